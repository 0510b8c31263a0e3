/* SPDX-License-Identifier: MIT */
/* disk_users: processes that hang, or have too much to be read at once. They keep no other process from being read; and
 * those that could not open the disk themselves do not make the answer "unknown". */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/disk_users/fake_proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
        STRANGER = 54321,
        TIME_USEC = 300 * 1000,
        PLENTY_USEC = 200 * 1000 * 1000, /* enough on any machine; the share of a process is a part of it */
        LARGE_COUNT = 20000,
        DESCRIPTORS = 5000,
        CROWD = 8,
        CROWD_DESCRIPTORS = 600,
};

#define CAPABLE "CapPrm:\t000001ffffffffff\n"
#define CAN_PING "CapPrm:\t0000000000002000\n" /* CAP_NET_RAW, from the file of the program */
#define CAN_READ "CapPrm:\t0000000000000004\n" /* CAP_DAC_READ_SEARCH, as a backup has it */
#define INCAPABLE "CapPrm:\t0000000000000000\n"

/* `uid`: the real one; `as`: the effective, saved and file system ones. */
static void set_status_as(
        const char *pid, unsigned uid, unsigned as, unsigned gid, const char *groups, const char *capable)
{
        char path[64], text[512];

        snprintf(path, sizeof(path), "proc/%s/status", pid);
        snprintf(text, sizeof(text),
                "Name:\tx\nPPid:\t1\nUid:\t%u\t%u\t%u\t%u\nGid:\t%u\t%u\t%u\t%u\nGroups:\t%s \n%s", uid, as,
                as, as, gid, gid, gid, gid, groups, capable);
        fake_change_file(path, text);
}

static void set_status(const char *pid, unsigned uid, unsigned gid, const char *groups, const char *capable)
{
        set_status_as(pid, uid, uid, gid, groups, capable);
}

/* A pipe without a writer: to open it hangs. */
static void make_hanging(const char *pid)
{
        char path[64];

        fake_process(pid, "hanging", "mnt:[1]");
        snprintf(path, sizeof(path), "proc/%s/maps", pid);
        CHECK_INT(unlink(fake_path(path)), 0);
        CHECK_INT(mkfifo(fake_path(path), 0600), 0);
}

static void remove_process(const char *pid)
{
        char command[256];

        snprintf(command, sizeof(command), "rm -r %s/%s", fake_path("proc"), pid);
        CHECK_INT(system(command), 0);
}

static void set_node(mode_t mode)
{
        CHECK_INT(chmod(fake_path("nodes/259:9"), mode), 0);
}

/* The node belongs to the user of this test. */
static void test_who_can_make_the_answer_unknown(void)
{
        const unsigned uid = getuid(), gid = getgid();
        char group[32];
        const struct {
                unsigned uid, as, gid;
                const char *groups, *capable, *namespace;
                mode_t mode;
                bool unknown;
        } rows[] = {
                {STRANGER, STRANGER, STRANGER, "1 2", INCAPABLE, "user:[1]", 0660, false},
                {STRANGER, STRANGER, STRANGER, "",    INCAPABLE, "user:[1]", 0660, false},
                {STRANGER, STRANGER, STRANGER, "1",   CAPABLE,   "user:[2]", 0660,
                 false                                                                  }, /* of its own namespace */
                {STRANGER, STRANGER, gid,      "1",   INCAPABLE, "user:[1]", 0600, false},
                {0,        0,        STRANGER, "1",   INCAPABLE, "user:[1]", 0660, true },
                {uid,      uid,      STRANGER, "1",   INCAPABLE, "user:[1]", 0660, true },
                {STRANGER, STRANGER, gid,      "1",   INCAPABLE, "user:[1]", 0660, true },
                {STRANGER, STRANGER, STRANGER, group, INCAPABLE, "user:[1]", 0660, true },
                {STRANGER, STRANGER, STRANGER, "1",   CAPABLE,   "user:[1]", 0660, true },
                {STRANGER, STRANGER, STRANGER, "1",   INCAPABLE, "user:[1]", 0664, true },
                {STRANGER, STRANGER, STRANGER, "1",   "",        "user:[1]", 0660, true },
                {STRANGER, 0,        STRANGER, "1",   CAPABLE,   "user:[1]", 0660, false}, /* set-uid root */
                {STRANGER, 0,        gid,      "1",   CAPABLE,   "user:[1]", 0660, true },
                {STRANGER, 0,        STRANGER, group, CAPABLE,   "user:[1]", 0660, true },
                {uid,      0,        STRANGER, "1",   CAPABLE,   "user:[1]", 0660, true },
                {0,        STRANGER, STRANGER, "1",   INCAPABLE, "user:[1]", 0660,
                 true                                                                   }, /* root, for a while as a user */
                {STRANGER, STRANGER, STRANGER, "1",   CAN_PING,  "user:[1]", 0660, false},
                {STRANGER, STRANGER, STRANGER, "1",   CAN_READ,  "user:[1]", 0660, true },
        };

        snprintf(group, sizeof(group), "1 %u 3", gid);
        make_hanging("200");
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct disk_users users = {.number = 9};
                char gap[192];

                set_status_as("200", rows[i].uid, rows[i].as, rows[i].gid, rows[i].groups, rows[i].capable);
                fake_change_link("proc/200/ns/user", rows[i].namespace);
                set_node(rows[i].mode);
                if (!CHECK_INT(fake_look(&users, 1, gap), rows[i].unknown ? -ETIME : 0))
                        fprintf(stderr, "row %zu\n", i);
                CHECK_INT(users.count, 0);
                CHECK(!rows[i].unknown || strstr(gap, "the mappings of process 200 (hanging)"));
                disk_users_clear(&users);
        }
        set_node(0660);
        remove_process("200");
}

/* Those behind it are found, however many hang. */
static void test_processes_that_hang_hide_no_other(void)
{
        char pid[16];

        for (int i = 0; i < 40; i++) {
                snprintf(pid, sizeof(pid), "%d", 300 + i);
                make_hanging(pid);
                set_status(pid, STRANGER, STRANGER, "", INCAPABLE);
        }
        fake_process("400", "honest", "mnt:[1]");
        fake_change_file(
                "proc/400/maps", "7f00-7f01 rw-s 00000000 00:05 99                         /dev/ublkb9\n");
        fake_link("proc/400/map_files/7f00-7f01", "/dev/ublkb9");
        set_status("400", STRANGER, STRANGER, "", INCAPABLE);
        fake_check_users(9, "process 400 (honest)", NULL);
        remove_process("400");
        fake_check_users(9, NULL);
        for (int i = 0; i < 40; i++) {
                snprintf(pid, sizeof(pid), "%d", 300 + i);
                remove_process(pid);
        }
}

/* The disk is the last of many mappings. */
static void make_large(const char *pid, unsigned uid)
{
        char path[64];
        FILE *maps;

        fake_process(pid, "large", "mnt:[1]");
        snprintf(path, sizeof(path), "proc/%s/map_files/7f00-7f01", pid);
        fake_link(path, "/dev/ublkb9");
        set_status(pid, uid, STRANGER, "", INCAPABLE);
        snprintf(path, sizeof(path), "proc/%s/maps", pid);
        maps = fopen(fake_path(path), "we");
        if (!CHECK(maps))
                return;
        for (int i = 0; i < LARGE_COUNT; i++)
                fprintf(maps, "%x000-%x800 rw-s 00000000 00:01 1234      /dev/zero\n", 0x10 + i, 0x10 + i);
        fputs("7f00-7f01 rw-s 00000000 00:05 99                         /dev/ublkb9\n", maps);
        fclose(maps);
        snprintf(path, sizeof(path), "proc/%s/map_files/10000-10800", pid);
        fake_link(path, fake_path("programs/program"));
}

/* First root, then one of each user, then the second one of each. */
static void test_users_take_turns(void)
{
        const unsigned uids[] = {STRANGER, STRANGER, STRANGER, STRANGER + 1, STRANGER + 1, 0};
        struct disk_users users = {.number = 9};
        size_t last = 0;
        char gap[192], pid[16];

        for (size_t i = 0; i < ARRAY_SIZE(uids); i++) {
                snprintf(pid, sizeof(pid), "%zu", 510 + i);
                make_large(pid, uids[i]);
        }
        fake_time = PLENTY_USEC;
        CHECK_INT(fake_look(&users, 1, gap), 0);
        if (CHECK_INT(users.count, ARRAY_SIZE(uids))) {
                CHECK_STR(users.items[0], "process 515 (large)");
                /* The directory decides which one of a user is its first. */
                for (size_t i = 1; i <= 2; i++)
                        last += strncmp(users.items[i], "process 513", 11) == 0
                                || strncmp(users.items[i], "process 514", 11) == 0;
                CHECK_INT(last, 1);
        }
        disk_users_clear(&users);
        fake_time = TIME_USEC;
        for (size_t i = 0; i < ARRAY_SIZE(uids); i++) {
                snprintf(pid, sizeof(pid), "%zu", 510 + i);
                remove_process(pid);
        }
}

/* It is found if there is time. */
static void test_many_mappings(void)
{
        struct disk_users users = {.number = 9};
        char gap[192];

        make_large("500", STRANGER);
        fake_time = PLENTY_USEC;
        fake_check_users(9, "process 500 (large)", NULL);
        fake_time = 1;
        fake_check_users(9, NULL); /* there was none */
        set_status("500", 0, STRANGER, "", INCAPABLE);
        CHECK_INT(fake_look(&users, 1, gap), -ETIME);
        CHECK(strstr(gap, "the mappings of process 500 (large)"));
        disk_users_clear(&users);
        fake_time = TIME_USEC;
        remove_process("500");
}

static void test_many_descriptors(void)
{
        struct disk_users users = {.number = 9};
        char gap[192], path[64];

        fake_process("600", "many", "mnt:[1]");
        set_status("600", STRANGER, STRANGER, "", INCAPABLE);
        for (int i = 1; i < DESCRIPTORS; i++) {
                snprintf(path, sizeof(path), "proc/600/fd/%d", i);
                fake_link(path, "/tmp/file");
        }
        fake_time = 1;
        fake_check_users(9, NULL);
        set_status("600", 0, STRANGER, "", INCAPABLE);
        CHECK_INT(fake_look(&users, 1, gap), -ETIME);
        CHECK(strstr(gap, "the descriptors of process 600 (many)"));
        disk_users_clear(&users);
        fake_time = PLENTY_USEC;
        fake_change_link("proc/600/fd/4999", "/dev/ublkb9");
        fake_check_users(9, "process 600 (many)", NULL);
        set_status("600", STRANGER, STRANGER, "", INCAPABLE);
        fake_check_users(9, "process 600 (many)", NULL);
        fake_time = TIME_USEC;
        remove_process("600");
}

static void make_descriptors(const char *pid, int count, const char *last)
{
        char path[64];

        for (int i = 1; i <= count; i++) {
                snprintf(path, sizeof(path), "proc/%s/fd/%d", pid, i);
                fake_link(path, i == count ? last : "/tmp/file");
        }
}

/* Each process of the crowd has fewer descriptors than are read of one at first, and together they have more than there
 * is time for. */
static void test_a_crowd_hides_no_other(void)
{
        char pid[16];

        for (int i = 0; i < CROWD; i++) {
                snprintf(pid, sizeof(pid), "%d", 2000 + i);
                fake_process(pid, "crowd", "mnt:[1]");
                set_status_as(pid, STRANGER, i % 2 ? 0 : STRANGER, STRANGER, "", i % 2 ? CAPABLE : INCAPABLE);
                make_descriptors(pid, CROWD_DESCRIPTORS, "/tmp/file");
        }
        fake_process("9998", "ordinary", "mnt:[1]");
        make_descriptors("9998", 20, "/dev/ublkb9");
        fake_process("9999", "root", "mnt:[1]");
        set_status("9999", 0, 0, "", CAPABLE);
        make_descriptors("9999", 300, "/dev/ublkb9");
        fake_time = 0;
        fake_check_users(9, "process 9998 (ordinary)", "process 9999 (root)", NULL);
        remove_process("9999");
        fake_asked = 0;
        fake_time = 1;
        fake_check_users(9, "process 9998 (ordinary)", NULL);
        CHECK(fake_asked < CROWD * CROWD_DESCRIPTORS / 4);
        fake_time = TIME_USEC;
        remove_process("9998");
        for (int i = 0; i < CROWD; i++) {
                snprintf(pid, sizeof(pid), "%d", 2000 + i);
                remove_process(pid);
        }
}

/* A mount that is not read is found by the exclusive open; without one the answer is unknown. */
static void test_many_mounts(void)
{
        struct disk_users users = {.number = 9, .exclusively = true};
        char gap[192];
        FILE *mounts;

        fake_process("700", "mounts", "mnt:[7]");
        fake_process("701", "mounts", "mnt:[7]");
        set_status("700", STRANGER, STRANGER, "", INCAPABLE);
        mounts = fopen(fake_path("proc/700/mountinfo"), "we");
        if (!CHECK(mounts))
                return;
        for (int i = 0; i < LARGE_COUNT; i++)
                fprintf(mounts, "%d 35 0:40 / /tmp/%d rw - tmpfs none rw\n", 100 + i, i);
        fputs("99 35 259:9 / /late rw - xfs /dev/ublkb9 rw\n", mounts);
        fclose(mounts);
        fake_time = PLENTY_USEC;
        fake_check_users(9, "mounted at /late", NULL);
        fake_time = 1;
        CHECK_INT(fake_look(&users, 1, gap), 0);
        CHECK_INT(users.count, 0);
        disk_users_clear(&users);
        fake_hold = -EBUSY;
        users.exclusively = true;
        CHECK_INT(fake_look(&users, 1, gap), 0);
        CHECK_INT(users.count, 1);
        disk_users_clear(&users);
        fake_hold = 0;
        users.exclusively = false;
        CHECK_INT(fake_look(&users, 1, gap), -ETIME);
        disk_users_clear(&users);
        set_status("700", 0, STRANGER, "", INCAPABLE);
        users.exclusively = true;
        CHECK_INT(fake_look(&users, 1, gap), -ETIME);
        CHECK(strstr(gap, "the mounts of process 700 (mounts)"));
        disk_users_clear(&users);
        fake_time = TIME_USEC;
        remove_process("700");
        remove_process("701");
}

int main(void)
{
        fake_make();
        fake_time = TIME_USEC;
        fake_file("sys/block/ublkb9/dev", "259:9\n");
        fake_file("nodes/259:9", "");
        test_who_can_make_the_answer_unknown();
        test_processes_that_hang_hide_no_other();
        test_many_mappings();
        test_users_take_turns();
        test_many_descriptors();
        test_a_crowd_hides_no_other();
        test_many_mounts();
        fake_remove();
        return check_report();
}
