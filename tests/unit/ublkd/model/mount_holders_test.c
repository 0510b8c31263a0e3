/* SPDX-License-Identifier: MIT */
/* mount_holders: each counts once, until the next boot, and the note never has more than it has room for. */
#include "ublkd/model/mount_holders.h"

#include "tests/unit/check.h"

#include <errno.h>

static const char boot[] = "11111111-2222-4333-8444-555555555555",
                  later[] = "99999999-2222-4333-8444-555555555555";

static void test_each_counts_once(void)
{
        char note[MOUNT_HOLDERS_SIZE] = "";

        CHECK_INT(mount_holders_count(note, boot), 0);
        CHECK_INT(mount_holders_add(note, boot, "a"), 1);
        CHECK_INT(mount_holders_add(note, boot, "a"), 0);
        CHECK_INT(mount_holders_add(note, boot, "b"), 1);
        CHECK_INT(mount_holders_add(note, boot, "c"), 1);
        CHECK_INT(mount_holders_count(note, boot), 3);
        CHECK(mount_holders_remove(note, boot, "b"));
        CHECK(!mount_holders_remove(note, boot, "b"));
        CHECK(!mount_holders_remove(note, boot, ""));
        CHECK_INT(mount_holders_count(note, boot), 2);
        CHECK(mount_holders_remove(note, boot, "a"));
        CHECK(mount_holders_remove(note, boot, "c"));
        CHECK_INT(mount_holders_count(note, boot), 0);
}

static void test_those_of_another_boot_are_gone(void)
{
        char note[MOUNT_HOLDERS_SIZE] = "";

        CHECK_INT(mount_holders_add(note, boot, "a"), 1);
        CHECK_INT(mount_holders_count(note, later), 0);
        CHECK(!mount_holders_remove(note, later, "a"));
        CHECK_INT(mount_holders_add(note, later, "b"), 1);
        CHECK_INT(mount_holders_count(note, later), 1);
        CHECK_INT(mount_holders_count(note, boot), 0);
}

static void test_there_is_room_for_so_many(void)
{
        char note[MOUNT_HOLDERS_SIZE] = "", name[16];

        for (int i = 0; i < MOUNT_HOLDERS_MAX; i++) {
                snprintf(name, sizeof(name), "%d", i);
                CHECK_INT(mount_holders_add(note, boot, name), 1);
        }
        CHECK_INT(mount_holders_count(note, boot), MOUNT_HOLDERS_MAX);
        CHECK_INT(mount_holders_add(note, boot, "more"), -ENOSPC);
        CHECK_INT(mount_holders_add(note, boot, "7"), 0);
        CHECK(mount_holders_remove(note, boot, "7"));
        CHECK_INT(mount_holders_add(note, boot, "more"), 1);
}

int main(void)
{
        test_each_counts_once();
        test_those_of_another_boot_are_gone();
        test_there_is_room_for_so_many();
        return check_report();
}
