/* SPDX-License-Identifier: MIT */
/* disk_users: on a made-up /proc and /sys. disk_search_test looks at the real ones. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/disk_users/fake_proc.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of udev: root, with its program and its name. */
static void make_prober(const char *pid, const char *comm)
{
        char path[64];

        fake_process(pid, comm, "mnt:[1]");
        snprintf(path, sizeof(path), "proc/%s/exe", pid);
        fake_change_link(path, fake_path("programs/udevadm"));
        snprintf(path, sizeof(path), "proc/%s/status", pid);
        fake_change_file(path, "Name:\tudev\nPPid:\t1\nUid:\t0\t0\t0\t0\n");
}

static void make_machine(void)
{
        fake_file("sys/block/ublkb7/dev", "259:2\n");
        fake_file("sys/block/ublkb7/ublkb7p1/dev", "259:3\n");
        fake_file("sys/block/ublkb7/queue/dev", "1:3\n");
        fake_file("proc/swaps", "Filename\t\t\t\tType\t\tSize\tUsed\tPriority\n/dev/ublkb3p2                 "
                                "          partition\t8\t0\t-2\n/swap\\040file file 8 0 -3\n");
        fake_file("proc/uptime", "1 1\n");
        fake_process("20", "bash", "mnt:[1]"); /* sees the same mounts */
        fake_process("30", "dd", "mnt:[2]");
        fake_link("proc/30/fd/3", "/dev/ublkb0");
        fake_link("proc/30/fd/4", "/dev/ublkb0");
        fake_process("40", "fio", "mnt:[1]");
        fake_link("proc/40/fd/9", "/dev/ublkb0p12");
        fake_process("41", "mapper", "mnt:[1]");
        fake_file("proc/41/maps", "7f00-7f01 rw-s 00000000 00:05 99                         /dev/ublkb0\n");
        fake_link("proc/41/map_files/7f00-7f01", "/dev/ublkb0");
        fake_process("42", "leftover", "mnt:[1]");
        fake_link("proc/42/fd/3", "/dev/ublkb5 (deleted)");
        make_prober("50", "(udev-worker)");
        fake_link("proc/50/fd/3", "/dev/ublkb6");
        fake_process("43", "renamed", "mnt:[1]");
        fake_link("proc/43/fd/3", "/dev/xvda");
        fake_process("51", "ublkd-worker", "mnt:[1]");
        fake_link("proc/51/fd/3", "/dev/ublkc0");
        fake_link("proc/51/fd/4", "socket:[ublkb0]");
        fake_process("53", "ublkd-worker", "mnt:[1]"); /* of a disk on a disk */
        fake_link("proc/53/fd/5", "/dev/ublkb8");
        fake_process("4711", "ublkd", "mnt:[1]"); /* keeps the store of that disk open */
        fake_link("proc/4711/fd/9", "/dev/ublkb8");
        fake_process("52", "other", "mnt:[1]");
        fake_link("proc/52/fd/3", "/dev/ublkb07");
        fake_link("proc/52/fd/4", "/dev/ublkb0px");
        fake_file("proc/60/cmdline", "a process that has just gone");
        fake_file("sys/block/ublkb4/holders/dm-0", "");
        fake_file("sys/block/ublkb4/ublkb4p1/holders/md127", "");
        fake_file("sys/block/ublkb4/queue/holders/no", "");
        fake_link("sys/dev/block/259:3", "../../devices/virtual/block/ublkb7/ublkb7p1");
}

/* What any user can do to make a disk look used. */
static void make_pretenders(void)
{
        fake_file("proc/filesystems", "nodev\ttmpfs\n\text4\nnodev\tfuse\n\tfuseblk\n\tbtrfs\n");
        fake_process("70", "namesake", "mnt:[1]");
        fake_link("proc/70/fd/3", "/tmp/ublkb10");
        fake_process("71", "mapper", "mnt:[1]");
        fake_file("proc/71/maps", "00400000-7f01 rw-s 00000000 08:01 99            /tmp/ublkb10\n");
        fake_link("proc/71/map_files/400000-7f01", "/tmp/ublkb10");
        fake_process("72", "o_path", "mnt:[1]");
        fake_link("proc/72/fd/3", "/dev/ublkb10");
        fake_file("proc/72/fdinfo/3", "pos:\t0\nflags:\t012000000\nmnt_id:\t9\n");
        fake_file("sys/block/loop7/loop/backing_file", "/tmp/ublkb10\n");
        fake_file("sys/block/loop8/loop/backing_file", "/dev/shm/ublkb10 (deleted)\n");
}

/* What the kernel has open without telling of a holder. */
static void make_stacks(void)
{
        fake_file("sys/block/loop0/loop/backing_file", "/dev/ublkb11\n");
        fake_file("sys/block/loop12/loop/backing_file", "/dev/ublkb11p3 (deleted)\n");
        fake_file("sys/block/loop2/loop/backing_file", "/dev/ublkb110\n");
        fake_file("sys/block/loop3/size", "0\n"); /* nothing behind it */
        fake_file("sys/block/zram0/backing_dev", "/dev/ublkb11\n");
        fake_file("sys/block/zram1/backing_dev", "none\n");
        fake_file("sys/kernel/config/nvmet/subsystems/nqn/namespaces/5/device_path", "/dev/ublkb11\n");
        fake_file("sys/kernel/config/target/core/iblock_0/data/udev_path", "/dev/ublkb11p1\n");
        fake_file("sys/kernel/config/target/core/fileio_0/other/udev_path", "/srv/ublkb11\n");
}

static void test_made_up_machine(void)
{
        make_machine();
        make_pretenders();
        make_stacks();
        fake_check_users(0, "mounted at /mnt one", "mounted at /elsewhere", "process 30 (dd)",
                "process 40 (fio)", "process 41 (mapper)", NULL);
        fake_check_users(1, NULL);
        fake_check_users(2, "mounted at /btrfs", NULL);
        fake_check_users(3, "swap on /dev/ublkb3p2", NULL);
        fake_check_users(4, "part of /dev/dm-0", "part of /dev/md127", NULL);
        fake_check_users(5, "process 42 (leftover)", NULL);
        fake_check_users(6, NULL); /* a probe by udev does not count */
        fake_check_users(7, "mounted at /by-link", "process 43 (renamed)", NULL); /* whatever name it has */
        fake_check_users(8, "the device top (/dev/ublkb9, served by process 53)", NULL); /* which says all */
        fake_check_users(10, NULL);
        fake_check_users(11, "backing /dev/loop0", "backing /dev/loop12", "backing /dev/zram0",
                "exported by the NVMe target as nqn", "exported by the SCSI target as data", NULL);
}

/* Neither our own worker nor ublkd is a process to be ended. */
static void test_what_users_are(void)
{
        static const struct {
                int number;
                unsigned kinds;
        } rows[] = {
                {0, DISK_USER_PROCESS                   },
                {1, DISK_USER_DEVICE                    },
                {2, 0                                   },
                {8, DISK_USER_DEVICE | DISK_USER_PROCESS},
        };

        fake_link("proc/4711/fd/10", "/dev/ublkb1"); /* whose worker is not there any more */
        fake_check_users(1, "ublkd itself (process 4711), for a device that lies on it", NULL);
        fake_process("54", "dd", "mnt:[1]");
        fake_link("proc/54/fd/3", "/dev/ublkb8");
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct disk_users users = {.number = rows[i].number};

                fake_find(&users, 1);
                CHECK_INT(users.kinds, rows[i].kinds);
                disk_users_clear(&users);
        }
        fake_change_link("proc/4711/fd/10", "/dev/null");
        fake_change_link("proc/54/fd/3", "/dev/null");
}

static void check_kinds(int number, unsigned kinds)
{
        struct disk_users users = {.number = number};

        fake_find(&users, 1);
        CHECK_INT(users.kinds, kinds);
        disk_users_clear(&users);
}

/* systemd keeps the store of a device for the next ublkd, and is not to be ended. */
static void test_the_service_manager_that_keeps_a_store(void)
{
        fake_link("proc/1/fd/30", "/dev/ublkb8"); /* on which a device lies */
        fake_check_users(8, "the device top (/dev/ublkb9, served by process 53)", NULL);
        check_kinds(8, DISK_USER_DEVICE);
        fake_change_link("proc/1/fd/30", "/dev/ublkb1");
        fake_check_users(1, "process 1 (systemd)", NULL); /* of another service: not ublkd's */
        check_kinds(1, DISK_USER_PROCESS);
        fake_change_link("proc/4711/fd/10", "/dev/ublkb1");
        fake_check_users(1, "ublkd itself (process 4711), for a device that lies on it", NULL);
        check_kinds(1, DISK_USER_DEVICE);
        fake_change_link("proc/4711/fd/10", "/dev/null");
        fake_change_link("proc/1/fd/30", "/dev/null");
}

/* A mount is found however many namespaces there are. */
static void test_any_number_of_mount_namespaces(void)
{
        enum { PROCESSES = 300, PLACES = 3 };
        char pid[16], namespace[32];
        struct disk_users users = {.number = 10};

        for (unsigned i = 0; i < PROCESSES; i++) {
                snprintf(pid, sizeof(pid), "%u", 2000 + i);
                snprintf(namespace, sizeof(namespace), "mnt:[%s]", pid);
                fake_process(pid, "unshare", namespace);
        }
        for (unsigned i = 0; i < PROCESSES; i += PROCESSES / PLACES) { /* whichever of them it is */
                char path[64];

                snprintf(path, sizeof(path), "proc/%u/mountinfo", 2000 + i);
                fake_change_file(path, "99 1 98:0 / /in rw - xfs /dev/ublkb10 rw\n");
                fake_find(&users, 1);
                if (CHECK_INT(users.count, 1)) {
                        CHECK_STR(users.items[0], "mounted at /in");
                        CHECK_INT(users.uids[0], geteuid()); /* who has the files of the process */
                }
                disk_users_clear(&users);
                fake_change_file(path, fake_mounts[1]);
        }
}

/* A name can be chosen (prctl(PR_SET_NAME), or that of the program's file). */
static void test_a_name_hides_no_process(void)
{
        fake_process("80", "(udev-worker)", "mnt:[1]"); /* an ordinary user */
        fake_link("proc/80/fd/3", "/dev/ublkb9");
        fake_check_users(9, "process 80 ((udev-worker))", NULL);
        fake_change_file(
                "proc/80/status", "Name:\tudev\nPPid:\t1\nUid:\t0\t0\t0\t0\n"); /* root, another program */
        fake_check_users(9, "process 80 ((udev-worker))", NULL);
        fake_change_link("proc/80/exe", fake_path("programs/udevadm"));
        fake_check_users(9, NULL);                       /* now it is udev */
        fake_change_link("proc/80/ns/user", "user:[2]"); /* root of a user namespace of its own */
        fake_check_users(9, "process 80 ((udev-worker))", NULL);
        fake_change_link("proc/80/ns/user", "user:[1]");
        fake_change_file("proc/80/status", "Name:\tudev\nPPid:\t1\nUid:\t1000\t1000\t1000\t1000\n");
        fake_check_users(9, "process 80 ((udev-worker))", NULL);
        fake_change_file("proc/80/comm", "udevadm\n"); /* "udevadm lock" is an administrator's */
        fake_change_file("proc/80/status", "Name:\tudev\nPPid:\t1\nUid:\t0\t0\t0\t0\n");
        fake_check_users(9, "process 80 (udevadm)", NULL);
        fake_change_link("proc/80/fd/3", "/dev/null");

        fake_process("81", "ublkd-worker", "mnt:[81]");
        fake_file("proc/81/maps", "7f00-7f01 rw-s 00000000 00:05 99                         /dev/ublkb9\n");
        fake_link("proc/81/map_files/7f00-7f01", "/dev/ublkb9");
        fake_change_file("proc/81/mountinfo", "99 1 98:0 / /in rw - xfs /dev/ublkb1 rw\n");
        fake_check_users(1, "mounted at /in", NULL);
        fake_check_users(9, "process 81 (ublkd-worker)", NULL);
        fake_change_file("proc/81/maps", "");
        fake_change_file("proc/81/mountinfo", "");
}

/* Our own helper holds a disk while it stops it. */
static void test_our_control_helper_does_not_count(void)
{
        fake_process("82", "ublkd-control", "mnt:[1]");
        fake_link("proc/82/fd/3", "/dev/ublkb9");
        fake_change_link("proc/82/exe", fake_path("programs/ublkd-helper"));
        fake_check_users(9, "process 82 (ublkd-control)", NULL); /* of another supervisor, or of none */
        fake_change_file("proc/82/status", "Name:\tublkd-control\nPPid:\t4711\nUid:\t0\t0\t0\t0\n");
        fake_check_users(9, NULL);
        fake_change_link("proc/82/exe", fake_path("programs/program")); /* a worker */
        fake_check_users(9, "process 82 (ublkd-control)", NULL);
        fake_change_link("proc/82/exe", fake_path("programs/ublkd"));
        fake_check_users(9, "process 82 (ublkd-control)", NULL);
        fake_change_link("proc/82/fd/3", "/dev/null");
}

/* A thread may have descriptors and mounts of its own, and outlive the first one. */
static void test_threads(void)
{
        fake_process("90", "threads", "mnt:[1]");
        fake_process("92", "threads", "mnt:[1]"); /* below /proc/92, not listed there in a real one */
        fake_process("93", "threads", "mnt:[93]");
        fake_file("proc/90/task/92/comm", "");
        fake_file("proc/90/task/93/comm", "");
        fake_link("proc/93/fd/3", "/dev/ublkb9");
        fake_change_file("proc/93/mountinfo", "99 1 98:0 / /thread rw - xfs /dev/ublkb1 rw\n");
        CHECK_INT(rename(fake_path("proc/92"), fake_path("proc/092")), 0);
        fake_check_users(1, "mounted at /thread", NULL);
        CHECK_INT(rename(fake_path("proc/092"), fake_path("proc/92")), 0);
        CHECK_INT(unlink(fake_path("proc/90/exe")), 0);  /* the first one has ended */
        fake_change_link("proc/90/fd/0", "/dev/ublkb9"); /* it is about to close that */
        fake_check_users(1, "mounted at /thread", NULL);
        fake_change_link("proc/93/fd/3", "/dev/null");
        fake_check_users(9, NULL);
        fake_change_link("proc/90/fd/0", "/dev/null");
        fake_change_file("proc/93/mountinfo", "");
        fake_link("proc/90/exe", fake_path("programs/program"));
}

/* Of a namespace that a process with a root of its own was found in first. */
static void test_a_process_that_sees_a_part(void)
{
        fake_process("100", "chrooted", "mnt:[100]");
        fake_change_link("proc/100/root", "/srv/jail");
        fake_change_file("proc/100/mountinfo", "");
        fake_process("101", "chrooted", "mnt:[100]");
        fake_change_link("proc/101/root", "/srv/jail");
        fake_change_file("proc/101/mountinfo", "99 1 98:0 / /in rw - xfs /dev/ublkb1 rw\n");
        fake_check_users(1, "mounted at /in", NULL);
        fake_change_file("proc/101/mountinfo", "");
        fake_process("102", "whole", "mnt:[100]");
        fake_change_file("proc/102/mountinfo", "99 1 98:0 / /whole rw - xfs /dev/ublkb1 rw\n");
        fake_check_users(1, "mounted at /whole", NULL);
        fake_change_file("proc/102/mountinfo", "");
}

/* A file system whose last mount was taken away lazily. */
static void test_a_file_system_without_a_mount(void)
{
        fake_file("sys/fs/ext4/ublkb1/errors_count", "0\n");
        fake_file("sys/fs/ext4/ublkb0/errors_count", "0\n"); /* mounted */
        fake_file("sys/fs/ext4/features/lazy_itable_init", "supported\n");
        fake_link("sys/fs/btrfs/0-0-0/devices/ublkb9p2", "../../ublkb9p2");
        fake_check_users(1, "a file system (ext4) that no process has mounted any more", NULL);
        fake_check_users(9, "a file system (btrfs) that no process has mounted any more", NULL);
        fake_check_users(0, "mounted at /mnt one", "mounted at /elsewhere", "process 30 (dd)",
                "process 40 (fio)", "process 41 (mapper)", NULL);
        CHECK_INT(unlink(fake_path("sys/fs/ext4/ublkb1/errors_count")), 0);
        CHECK_INT(rmdir(fake_path("sys/fs/ext4/ublkb1")), 0);
        CHECK_INT(unlink(fake_path("sys/fs/btrfs/0-0-0/devices/ublkb9p2")), 0);
}

/* The kernel knows users that /proc and /sys do not show; it is asked only if no user was found, and where that
 * was wanted. */
static void test_the_kernels_own_word(void)
{
        enum { FREE = 9, OPEN = 8, GONE = 6 };
        char gap[192];

        fake_file("sys/block/ublkb9/size", "2048\n");
        fake_file("sys/block/ublkb8/size", "2048\n");
        for (int hold = 0; hold < 3; hold++) {
                static const int errors[] = {0, -EBUSY, -ENOENT};
                struct disk_users disks[] = {
                        {.number = GONE, .exclusively = true},
                        {.number = OPEN, .exclusively = true},
                        {.number = FREE, .exclusively = true}
                };

                fake_hold = errors[hold];
                CHECK_INT(fake_look(disks, 3, gap),
                        hold == 2 ? -EIO : 0); /* not "gone": the kernel shows the disk */
                CHECK(!!strstr(gap, "the disk cannot be opened exclusively") == (hold == 2));
                CHECK_INT(disks[0].count, 0);
                CHECK_INT(disks[1].count, 1); /* the device of process 53, as above */
                CHECK_INT(disks[2].count, hold == 1);
                for (size_t i = 0; i < 3; i++)
                        disk_users_clear(&disks[i]);
        }
        fake_hold = -EBUSY;
        fake_check_users(FREE, NULL); /* only the names are asked for */
        fake_hold = 0;
        CHECK_INT(unlink(fake_path("sys/block/ublkb9/size")), 0);
        CHECK_INT(rmdir(fake_path("sys/block/ublkb9")), 0);
}

static void test_too_many_users(void)
{
        char pid[16], path[64];
        struct disk_users users = {.number = 9};

        for (int i = 0; i < 40; i++) {
                snprintf(pid, sizeof(pid), "%d", 1000 + i);
                fake_process(pid, "many", "mnt:[1]");
                snprintf(path, sizeof(path), "proc/%s/fd/7", pid);
                fake_link(path, "/dev/ublkb9");
                snprintf(path, sizeof(path), "proc/%s/fd/8",
                        pid); /* a second descriptor is not another user */
                fake_link(path, "/dev/ublkb9p1");
        }
        fake_find(&users, 1);
        CHECK_INT(users.count, DISK_USERS_MAX);
        CHECK_INT(users.dropped, 40 - DISK_USERS_MAX);
        disk_users_clear(&users);
}

/* A client that waits for a search that hangs can learn at which process it hangs. */
static void test_where_it_is(void)
{
        char proc[PATH_MAX], sys[PATH_MAX];
        struct disk_users_place place = {};
        const struct disk_users_roots roots = {.proc = proc, .sys = sys, .place = &place};
        struct disk_users users = {.number = 9};

        strcpy(proc, fake_path("proc"));
        strcpy(sys, fake_path("sys"));
        CHECK_INT(disk_users_find(&roots, &users, 1), 0);
        CHECK(place.pid > 0 && place.comm[0]);
        disk_users_clear(&users);
}

int main(void)
{
        fake_make();
        test_made_up_machine();
        test_what_users_are();
        test_the_service_manager_that_keeps_a_store();
        test_a_name_hides_no_process();
        test_our_control_helper_does_not_count();
        test_threads();
        test_a_process_that_sees_a_part();
        test_a_file_system_without_a_mount();
        test_the_kernels_own_word();
        test_too_many_users();
        test_where_it_is();
        test_any_number_of_mount_namespaces();
        fake_remove();
        return check_report();
}
