/* SPDX-License-Identifier: MIT */
/* Files of a policy: each fault has a line of the file, and a policy without faults never lets two users try the same
 * name. */
#include "tests/fuzz/fuzz.h"
#include "ublkd/base/utf8.h"
#include "ublkd/policy/policy_parse.h"
#include "ublkd/policy/policy_prefix.h"

#include <errno.h>
#include <string.h>

enum { UIDS = 120 };

static const char path[] = "/etc/p/a.json";

static void check_problems(const struct problem_list *problems, size_t lines)
{
        for (size_t i = 0; i < problems->count; i++) {
                const char *detail = problems->items[i].detail;
                size_t line = 0;

                FUZZ_CHECK(strncmp(detail, path, strlen(path)) == 0);
                FUZZ_CHECK(sscanf(detail + strlen(path), ":%zu: ", &line) == 1 && line >= 1 && line <= lines);
                FUZZ_CHECK(utf8_is_valid(detail, strlen(detail)) && !strchr(detail, '\n'));
        }
}

static bool begins_with(const char *text, const char *prefix)
{
        return strncmp(text, prefix, strlen(prefix)) == 0;
}

static void check_names(const struct policy *policy)
{
        char prefixes[UIDS][PREFIX_SIZE];
        size_t count = 0;

        for (uid_t uid = 0; uid < UIDS; uid++) {
                const struct policy_client client = {.uid = uid, .gid = uid, .home = POLICY_HOME_HOST};
                const struct policy_rule *rule = policy_rule_for(policy, &client);

                FUZZ_CHECK(uid > 0 || !rule);
                if (!rule)
                        continue;
                policy_prefix_print(rule->options.name_prefix, uid, prefixes[count]);
                FUZZ_CHECK(device_name_is_valid(strcat(prefixes[count], "a")));
                prefixes[count][strlen(prefixes[count]) - 1] = '\0';
                for (size_t i = 0; i < count; i++)
                        FUZZ_CHECK(!begins_with(prefixes[i], prefixes[count])
                                   && !begins_with(prefixes[count], prefixes[i]));
                count++;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_free_ char *text = fuzz_text(data, size);
        struct policy_file file = {.path = (char *)path, .text = text, .size = strlen(text)};
        const struct policy_files files = {.items = &file, .count = 1};
        const struct policy_accounts accounts = {"/nonexistent/p", "/nonexistent/g", "/nonexistent/s"};
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_policy_ struct policy *policy = NULL;
        size_t lines = 1;
        int r;

        for (const char *at = text; *at; at++)
                lines += *at == '\n';
        FUZZ_CHECK(policy_new("/etc/p", &policy) == 0);
        r = policy_parse(&files, &accounts, policy, &problems);
        FUZZ_CHECK(r == (problems.count > 0 ? -EINVAL : 0));
        check_problems(&problems, lines);
        check_problems(&policy->notes, lines);
        if (r == 0)
                check_names(policy);
        return 0;
}
