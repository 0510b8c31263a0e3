/* SPDX-License-Identifier: MIT */
/* mount_users: what a death, or a failure, leaves of a list. mount_delivery_test.c has what a list is for. */
#include "ublkd/nodes/mount_users.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"

#include <stdlib.h>
#include <sys/stat.h>

enum { USER = 1000, ANOTHER = 1001 };

static char top[] = "/tmp/ublkd-test-users-XXXXXX";
static char base[64]; /* as of a mount */

static void test_a_list_begins_without_users(void)
{
        struct mount_users users;

        CHECK_INT(mount_users_read(base, &users), 0);
        mount_users_begin(base);
        CHECK_INT(mount_users_read(base, &users), 1);
        CHECK_INT(users.count, 0);
        CHECK_INT(mount_users_add(base, USER), 0);
        CHECK_INT(mount_users_add(base, USER), 0);
        CHECK_INT(mount_users_read(base, &users), 1);
        CHECK_INT(users.count, 1);
        CHECK(mount_users_has(&users, USER));
        mount_users_clear(&users);
        mount_users_end(base);
        CHECK_INT(mount_users_read(base, &users), 0);
}

/* A death has left the rest of an old list: a user whom it has lost may have a copy. */
static void test_a_part_of_a_list_is_none(void)
{
        static const char *const rests[] = {NULL, "1000"};
        char list[128], name[160];
        struct mount_users users;

        for (size_t i = 0; i < ARRAY_SIZE(rests); i++) {
                snprintf(list, sizeof(list), "%s.users", base);
                CHECK_INT(mkdir(list, 0700), 0);
                snprintf(name, sizeof(name), "%s/%s", list, rests[i] ? rests[i] : "");
                CHECK(!rests[i] || mknod(name, S_IFREG | 0600, 0) == 0);
                CHECK_INT(mount_users_read(base, &users), 0);
                CHECK_INT(mount_users_add(base, ANOTHER), 0); /* that makes it no better */
                CHECK_INT(mount_users_read(base, &users), 0);
                mount_users_begin(base);
                CHECK_INT(mount_users_read(base, &users), 1);
                CHECK_INT(users.count, 0);
                mount_users_end(base);
                CHECK(access(list, F_OK) < 0);
        }
}

/* What it has lost first is the mark. */
static void test_a_list_that_cannot_be_emptied_is_none(void)
{
        struct mount_users users;
        char name[160];

        mount_users_begin(base);
        snprintf(name, sizeof(name), "%s.users/1000", base);
        CHECK_INT(mkdir(name, 0700), 0); /* no file */
        mount_users_end(base);
        CHECK_INT(mount_users_read(base, &users), 0);
        mount_users_begin(base);
        CHECK_INT(mount_users_read(base, &users), 0);
        CHECK_INT(rmdir(name), 0);
        mount_users_end(base);
}

static void test_a_list_goes_whose_mount_has_gone(void)
{
        char other[80];
        struct mount_users users;

        snprintf(other, sizeof(other), "%s/other", top);
        CHECK_INT(mkdir(other, 0700), 0);
        mount_users_begin(other);
        mount_users_begin(base);
        CHECK_INT(mount_users_add(base, USER), 0);
        mount_users_clean(top);
        CHECK_INT(mount_users_read(base, &users), 0);
        CHECK_INT(mount_users_read(other, &users), 1);
        CHECK_INT(rmdir(other), 0);
        mount_users_clean(top);
        CHECK_INT(mount_users_read(other, &users), 0);
        mount_users_clean("/no/such/directory");
}

int main(void)
{
        CHECK(mkdtemp(top));
        snprintf(base, sizeof(base), "%s/volume", top);
        test_a_list_begins_without_users();
        test_a_part_of_a_list_is_none();
        test_a_list_that_cannot_be_emptied_is_none();
        test_a_list_goes_whose_mount_has_gone();
        CHECK_INT(rmdir(top), 0);
        return check_report();
}
