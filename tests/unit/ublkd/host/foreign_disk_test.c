/* SPDX-License-Identifier: MIT */
/* What a ublk device is that belongs to no record: by its cookie and by the process that serves it. */
#include "tests/unit/check.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/host/foreign_disk.h"
#include "ublkd/reconcile/view/observe.h"

#include <fcntl.h>
#include <linux/net.h>
#include <sys/stat.h>

enum { WORKER = 700, OTHER = 800 };

static char proc[] = "/tmp/foreign-disk-XXXXXX";

static void put(pid_t pid, const char *name, const char *text, size_t size)
{
        char path[128];
        _cleanup_close_ int fd = -1;

        snprintf(path, sizeof(path), "%s/%d", proc, (int)pid);
        (void)mkdir(path, 0700);
        snprintf(path, sizeof(path), "%s/%d/%s", proc, (int)pid, name);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        CHECK_INT(write(fd, text, size), (ssize_t)size);
}

static void put_process(pid_t pid, const char *comm, char state)
{
        char text[128];
        int n = snprintf(text, sizeof(text), "%d (%s) %c 1 0 0", (int)pid, comm, state);

        put(pid, "stat", text, (size_t)n);
        n = snprintf(text, sizeof(text), "%s\n", comm);
        put(pid, "comm", text, (size_t)n);
}

static struct foreign_disk describe(uint64_t cookie, enum kernel_state state, pid_t pid)
{
        struct foreign_disk disk = foreign_disk_of(
                &(struct kernel_device){.number = 3, .state = state, .cookie = cookie, .server_pid = pid});
        struct foreign_server server = foreign_server_look(proc, disk.server_pid);

        foreign_disk_describe(&disk, disk.server_pid > 0 ? &server : NULL, NULL);
        return disk;
}

static void a_worker_of_an_earlier_database(void)
{
        static const char arguments[] = "/usr/libexec/ublkd/ublkd-worker\0data";
        uint64_t cookie = device_cookie("0123abcd-0000-4000-8000-000000000000", 1);
        struct foreign_disk disk;

        put_process(WORKER, "ublkd-worker", 'S');
        put(WORKER, "cmdline", arguments, sizeof(arguments));
        disk = describe(cookie, KERNEL_STATE_LIVE, WORKER);
        CHECK_INT(disk.maker, FOREIGN_BY_UBLKD);
        CHECK_INT(disk.server.pid, WORKER);
        CHECK_STR(disk.server.process, "ublkd-worker data");
        CHECK_STR(disk.state, "live");
        CHECK(!disk.server.managed && foreign_disk_is_problem(&disk));
        CHECK(strstr(disk.detail, "/dev/ublkb3 "));
        CHECK(strstr(disk.detail, "process 700 (ublkd-worker data)"));
        CHECK(strstr(disk.detail, "ublkctl adopt"));
}

/* Write a file net/unix with a socket of type 5, and the worker's descriptor of it. */
static void put_socket(unsigned state)
{
        char path[128], text[256];
        _cleanup_close_ int fd = -1;
        int n = snprintf(text, sizeof(text),
                "Num       RefCount Protocol Flags    Type St Inode Path\n"
                "0000000000000000: 00000003 00000000 00000000 0001 03  4711\n"
                "0000000000000000: 00000003 00000000 00000000 0005 %02x  4712 /proc/self/fd/9/x.sock\n",
                state);

        snprintf(path, sizeof(path), "%s/net", proc);
        (void)mkdir(path, 0700);
        snprintf(path, sizeof(path), "%s/net/unix", proc);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        CHECK_INT(write(fd, text, (size_t)n), n);
        snprintf(path, sizeof(path), "%s/%d/fd", proc, WORKER);
        (void)mkdir(path, 0700);
        for (int inode = 4711; inode <= 4712; inode++) {
                snprintf(path, sizeof(path), "%s/%d/fd/%d", proc, WORKER, inode);
                snprintf(text, sizeof(text), "socket:[%d]", inode);
                (void)unlink(path);
                CHECK_INT(symlink(text, path), 0);
        }
}

static void a_worker_of_another_ublkd(void)
{
        struct foreign_disk disk;

        put_process(WORKER, "ublkd-worker", 'S');
        put_socket(SS_UNCONNECTED); /* it listens */
        CHECK(!describe(0, KERNEL_STATE_LIVE, WORKER).server.managed);
        put_socket(SS_CONNECTED);
        disk = describe(0, KERNEL_STATE_LIVE, WORKER);
        CHECK_INT(disk.maker, FOREIGN_BY_UBLKD); /* whatever its cookie is */
        CHECK(disk.server.managed && !foreign_disk_is_problem(&disk));
        CHECK(strstr(disk.detail, "ublkctl --socket"));
}

/* Linux 6.12 reports the pid of a dead server, which another process may have by now. */
static void a_disk_that_has_lost_its_worker(void)
{
        struct foreign_disk disk;

        put_process(OTHER, "sleep", 'S');
        disk = describe(
                device_cookie("0123abcd-0000-4000-8000-000000000000", 1), KERNEL_STATE_QUIESCED, OTHER);
        CHECK_INT(disk.maker, FOREIGN_BY_UBLKD);
        CHECK_INT(disk.server.pid, 0);
        CHECK_STR(disk.server.process, "");
        CHECK_STR(disk.state, "quiesced");
        CHECK(foreign_disk_is_problem(&disk) && !strstr(disk.detail, "800"));
}

static void a_disk_of_another_server(void)
{
        struct foreign_disk disk;

        put_process(OTHER, "kublk) x", 'S');
        disk = describe(5, KERNEL_STATE_LIVE, OTHER); /* flags of its own */
        CHECK_INT(disk.maker, FOREIGN_BY_OTHER);
        CHECK(!foreign_disk_is_problem(&disk));
        CHECK(strstr(disk.detail, "process 800 (kublk) x)"));
        put_process(OTHER, "kublk", 'Z');
        CHECK_INT(describe(5, KERNEL_STATE_LIVE, OTHER).server.pid, 0);
        CHECK_INT(describe(5, KERNEL_STATE_DEAD, -1).server.pid, 0);
}

/* Examining its process takes too long: the detail claims nothing about it. */
static void a_server_that_is_not_known(void)
{
        struct foreign_disk disk = foreign_disk_of(&(struct kernel_device){.number = 3,
                .state = KERNEL_STATE_LIVE,
                .cookie = device_cookie("0123abcd-0000-4000-8000-000000000000", 1),
                .server_pid = WORKER});

        foreign_disk_describe(&disk, NULL, NULL);
        CHECK_INT(disk.maker, FOREIGN_BY_UBLKD);
        CHECK(!disk.looked && !foreign_disk_is_problem(&disk));
        CHECK_INT(disk.server.pid, 0);
        CHECK(strstr(disk.detail, "process 700,"));
        CHECK(!strstr(disk.detail, "remove"));
}

static void what_is_found_is_kept(void)
{
        struct foreign_disk one = describe(1 << 20, KERNEL_STATE_LIVE, 0), other = one;
        struct foreign_disks disks = {};

        for (int i = 0; i < FOREIGN_DISKS_MAX + 2; i++)
                CHECK_INT(foreign_disks_add(&disks, &one), 0);
        CHECK_INT(disks.count, FOREIGN_DISKS_MAX);
        CHECK(foreign_disks_contain(&disks, &one));
        other.cookie++;
        CHECK(!foreign_disks_contain(&disks, &other));
        other = one;
        other.server.managed = !one.server.managed;
        CHECK(!foreign_disks_contain(&disks, &other));
        foreign_disks_clear(&disks);
        CHECK(!foreign_disks_contain(&disks, &one));
}

int main(void)
{
        char command[128];

        if (!CHECK(mkdtemp(proc)))
                return check_report();
        a_worker_of_an_earlier_database();
        a_worker_of_another_ublkd();
        a_disk_that_has_lost_its_worker();
        a_disk_of_another_server();
        a_server_that_is_not_known();
        what_is_found_is_kept();
        snprintf(command, sizeof(command), "rm -r %s", proc);
        CHECK_INT(system(command), 0);
        return check_report();
}
