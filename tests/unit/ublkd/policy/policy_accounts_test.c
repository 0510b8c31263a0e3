/* SPDX-License-Identifier: MIT */
/* policy_accounts: users, groups and subordinate uids in files as an administrator may leave them. */
#include "ublkd/policy/policy_accounts.h"

#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static char path[] = "/tmp/policy-accounts-XXXXXX";

static struct policy_accounts accounts_of(const char *text)
{
        FILE *file = fopen(path, "we");

        if (CHECK(file)) {
                CHECK(fputs(text, file) >= 0);
                CHECK_INT(fclose(file), 0);
        }
        return (struct policy_accounts){.passwd = path, .group = path, .subuid = path};
}

static void test_names(void)
{
        struct policy_accounts accounts =
                accounts_of("\n# comment\nshort\nalice:x\nal:x:7:\nodd:x:12a:\nlarge:x:"
                            "4294967295:\nminus:x:-1:\nalice:x:1000:1:a:b:c\nlast:x:9:");
        uint32_t number = 0;

        CHECK_INT(policy_accounts_user(&accounts, "alice", &number), 1);
        CHECK_INT(number, 1000);
        CHECK_INT(policy_accounts_group(&accounts, "last", &number), 1);
        CHECK_INT(number, 9);
        CHECK_INT(policy_accounts_user(&accounts, "ali", &number), 0);
        CHECK_INT(policy_accounts_user(&accounts, "odd", &number), 0);
        CHECK_INT(policy_accounts_user(&accounts, "large", &number), 0);
        CHECK_INT(policy_accounts_user(&accounts, "minus", &number), 0);
        CHECK_INT(policy_accounts_user(&accounts, "", &number), 0);
        CHECK_INT(number, 9);
}

static void test_files_that_are_not_there(void)
{
        struct policy_accounts accounts = {.passwd = "/nonexistent/passwd", .group = "/dev/null"};
        uint32_t number;

        CHECK_INT(policy_accounts_user(&accounts, "alice", &number), 0);
        CHECK_INT(policy_accounts_group(&accounts, "alice", &number), -EBADMSG);
}

static void test_subuids(void)
{
        struct policy_accounts accounts = accounts_of("alice:100000:65536\nbob:1:1\nalice:0:10\nalice:5:"
                                                      "0\nalice:4294967290:5\nalice:4294967290:6\nalice:7:x\n"
                                                      "alice:x:7\n");
        _cleanup_free_ struct uid_range *ranges = NULL;
        size_t count = 0;

        CHECK_INT(policy_accounts_subuids(&accounts, "alice", &ranges, &count), 2);
        CHECK_INT(policy_accounts_subuids(&accounts, "carol", &ranges, &count), 0);
        if (!CHECK_INT(count, 2))
                return;
        CHECK_INT(ranges[0].first, 100000);
        CHECK_INT(ranges[0].last, 165535);
        CHECK_INT(ranges[1].first, 4294967290);
        CHECK_INT(ranges[1].last, 4294967294);
}

/* As newuidmap(1) finds them. */
static void test_subuids_of_a_number(void)
{
        struct policy_accounts accounts = accounts_of("alice:x:1000:\n1000:200000:10\n1001:300000:10\n");
        _cleanup_free_ struct uid_range *ranges = NULL;
        size_t count = 0;

        CHECK_INT(policy_accounts_subuids(&accounts, "alice", &ranges, &count), 1);
        if (CHECK_INT(count, 1))
                CHECK_INT(ranges[0].last, 200009);
}

static void test_subuids_of_all(void)
{
        struct policy_accounts accounts = accounts_of(
                "alice:100000:65536\nroot:1000:1\n0:2000:1\nroo:3000:1\n1001:300000:10\nbob:0:1\n");
        _cleanup_free_ struct uid_range *ranges = NULL;
        size_t count = 0;

        CHECK_INT(policy_accounts_all_subuids(&accounts, &ranges, &count), 0);
        if (!CHECK_INT(count, 3))
                return;
        CHECK_INT(ranges[0].first, 100000);
        CHECK_INT(ranges[1].first, 3000);
        CHECK_INT(ranges[2].last, 300009);
        free(TAKE_PTR(ranges));
        count = 0;
        accounts = accounts_of("alice:0:10\nbob:4294967000:4294967295\ncarol:4294967295:2\ndave:0:1\n");
        CHECK_INT(policy_accounts_all_subuids(&accounts, &ranges, &count), 0);
        if (!CHECK_INT(count, 2))
                return;
        CHECK_INT(ranges[0].first, 1);
        CHECK_INT(ranges[0].last, 9);
        CHECK_INT(ranges[1].first, 4294967000);
        CHECK_INT(ranges[1].last, 4294967294);
        accounts = accounts_of("alice:0x186a0:65536\n");
        CHECK_INT(policy_accounts_all_subuids(&accounts, &ranges, &count), -EBADMSG);
        accounts = accounts_of("alice: 100000:65536\n");
        CHECK_INT(policy_accounts_all_subuids(&accounts, &ranges, &count), -EBADMSG);
        accounts.subuid = "/dev/null";
        CHECK_INT(policy_accounts_all_subuids(&accounts, &ranges, &count), -EBADMSG);
        accounts.subuid = "/nonexistent/subuid";
        CHECK_INT(policy_accounts_all_subuids(&accounts, &ranges, &count), 0);
        CHECK_INT(count, 2);
}

int main(void)
{
        CHECK(close_fd(mkstemp(path)) == -1);
        test_names();
        test_files_that_are_not_there();
        test_subuids();
        test_subuids_of_a_number();
        test_subuids_of_all();
        CHECK_INT(remove(path), 0);
        return check_report();
}
