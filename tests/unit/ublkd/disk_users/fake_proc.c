/* SPDX-License-Identifier: MIT */
/* A made-up /proc and /sys for the tests of disk_users. */
#include "tests/unit/ublkd/disk_users/fake_proc.h"

#include "tests/unit/check.h"
#include "tests/unit/remove_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static char root[] = "/tmp/fake_proc.XXXXXX";

/* Valid until it was called four times more. */
const char *fake_path(const char *path)
{
        static char buffers[4][PATH_MAX];
        static unsigned next;
        char *full = buffers[next++ % ARRAY_SIZE(buffers)];

        snprintf(full, PATH_MAX, "%s/%s", root, path);
        return full;
}

void fake_parents(const char *path)
{
        char part[PATH_MAX];

        strcpy(part, path);
        for (char *slash = strchr(part + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                CHECK(mkdir(part, 0755) >= 0 || errno == EEXIST);
                *slash = '/';
        }
}

void fake_file(const char *path, const char *text)
{
        const char *full = fake_path(path);
        FILE *file;

        fake_parents(full);
        file = fopen(full, "we");
        if (CHECK(file)) {
                fputs(text, file);
                fclose(file);
        }
}

void fake_link(const char *path, const char *target)
{
        const char *full = fake_path(path);

        fake_parents(full);
        CHECK_INT(symlink(target, full), 0);
}

/* The mounts of the namespaces mnt:[1] and mnt:[2]. */
const char *const fake_mounts[] = {
        "36 35 98:0 / /mnt\\040one rw,noatime master:1 - ext4 /dev/ublkb0 rw\n"
        "37 35 98:1 / /other rw - ext4 /dev/ublkb01 rw\n"
        "38 35 0:40 /sub /btrfs rw - btrfs /dev/ublkb2p1 rw\n"
        "41 35 259:3 / /by-link rw - ext4 /dev/ublk/by-name/data rw\n"
        "42 35 0:50 / /claimed rw - tmpfs /dev/ublkb10 rw\n"
        "43 35 0:51 / /claimed2 rw - fuse.sshfs /dev/ublkb10 rw\n"
        "39 35 0:41 / /none rw - tmpfs  rw\n",
        "99 1 98:0 / /elsewhere rw - xfs /dev/ublkb0 rw\n",
};

void fake_process(const char *pid, const char *comm, const char *namespace)
{
        char path[64], text[64];

        snprintf(path, sizeof(path), "proc/%s/comm", pid);
        snprintf(text, sizeof(text), "%s\n", comm);
        fake_file(path, text);
        snprintf(path, sizeof(path), "proc/%s/exe", pid);
        fake_link(path, fake_path("programs/program"));
        snprintf(path, sizeof(path), "proc/%s/root", pid);
        fake_link(path, "/");
        snprintf(path, sizeof(path), "proc/%s/ns/user", pid);
        fake_link(path, "user:[1]");
        snprintf(path, sizeof(path), "proc/%s/status", pid);
        fake_file(path, "Name:\tUid: 7\nPPid:\t1\nUid:\t1000\t1000\t1000\t1000\n");
        snprintf(path, sizeof(path), "proc/%s/task/%s/comm", pid, pid);
        fake_file(path, text);
        snprintf(path, sizeof(path), "proc/%s/ns/mnt", pid);
        fake_link(path, namespace);
        snprintf(path, sizeof(path), "proc/%s/mountinfo", pid);
        fake_file(path, fake_mounts[strcmp(namespace, "mnt:[1]") != 0]);
        snprintf(path, sizeof(path), "proc/%s/fd/0", pid);
        fake_link(path, "/dev/null");
        snprintf(path, sizeof(path), "proc/%s/maps", pid);
        fake_file(path, "7f00-7f01 r--p 00000000 08:01 1 /usr/lib/libc.so.6\n");
}

void fake_change_link(const char *path, const char *target)
{
        CHECK(unlink(fake_path(path)) == 0 || errno == ENOENT);
        fake_link(path, target);
}

void fake_change_file(const char *path, const char *text)
{
        CHECK(unlink(fake_path(path)) == 0 || errno == ENOENT);
        fake_file(path, text);
}

/* In this machine what is below /dev is a node, and a file of that name elsewhere is none. The disk 7 is
 * called /dev/xvda in a container. */
static int leads_to_dev(int directory, const char *name, dev_t *ret)
{
        char target[PATH_MAX] = "";
        ssize_t n = readlinkat(directory, name, target, sizeof(target) - 1);

        fake_asked++;
        *ret = strcmp(target, "/dev/xvda") == 0 ? makedev(259, 3) : makedev(1, 3);
        return n < 0 ? -errno : strncmp(target, "/dev/", 5) == 0;
}

/* The thread 2 of a process has the descriptors of the first, 3 has others. */
static bool shares_files(pid_t one, pid_t other)
{
        (void)one;
        return other % 10 == 2;
}

int fake_hold; /* what an exclusive open comes to: -errno, or 0: it succeeds */

static int open_exclusively(int number)
{
        (void)number;
        return fake_hold < 0 ? fake_hold : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* The process 53 is a worker of ours, of a disk on a disk. */
static bool describe(const void *userdata, pid_t pid, char *text, size_t size)
{
        (void)snprintf(text, size, "%s", (const char *)userdata);
        return pid == 53;
}

uint64_t fake_time;
size_t fake_asked;

int fake_look(struct disk_users *disks, size_t count, char gap_text[static 192])
{
        char proc[PATH_MAX], sys[PATH_MAX], udev[PATH_MAX], helper[PATH_MAX], nodes[PATH_MAX];
        const char *const probers[] = {"/nowhere/udevd", udev, NULL};
        struct disk_users_gap gap = {};
        const struct disk_users_roots roots = {.proc = proc,
                .sys = sys,
                .node = leads_to_dev,
                .shares_files = shares_files,
                .open_exclusively = open_exclusively,
                .probers = probers,
                .supervisor = FAKE_SUPERVISOR,
                .helper = helper,
                .keeper = 1,
                .describe = describe,
                .describe_userdata = "the device top (/dev/ublkb9, served by process 53)",
                .nodes = nodes,
                .time_usec = fake_time,
                .gap = &gap};
        int r;

        strcpy(proc, fake_path("proc"));
        strcpy(sys, fake_path("sys"));
        strcpy(udev, fake_path("programs/udevadm"));
        strcpy(helper, fake_path("programs/ublkd-helper"));
        strcpy(nodes, fake_path("nodes"));
        r = disk_users_find(&roots, disks, count);
        memcpy(gap_text, gap.text, sizeof(gap.text));
        return r;
}

void fake_find(struct disk_users *disks, size_t count)
{
        char gap[192];

        CHECK_INT(fake_look(disks, count, gap), 0);
        CHECK_STR(gap, "");
}

/* Asks about all other disks as well: each gets its own users. */
void fake_check_users(int number, ...)
{
        enum { DISKS = 12 };
        struct disk_users disks[DISKS] = {}, users;
        size_t count = 0;
        va_list wanted;

        for (int i = 0; i < DISKS; i++)
                disks[i].number = (number + 1 + i) % DISKS;
        fake_find(disks, DISKS);
        for (int i = 0; i < DISKS; i++) {
                CHECK_INT(disks[i].number, i); /* they are sorted now */
                if (i != number)
                        disk_users_clear(&disks[i]);
        }
        users = disks[number];
        va_start(wanted, number);
        for (const char *item = va_arg(wanted, const char *); item; item = va_arg(wanted, const char *)) {
                bool found = false;

                for (size_t i = 0; i < users.count; i++)
                        found = found || strcmp(users.items[i], item) == 0;
                if (!CHECK(found))
                        fprintf(stderr, "not reported: %s\n", item);
                count++;
        }
        va_end(wanted);
        if (!CHECK_INT(users.count, count))
                for (size_t i = 0; i < users.count; i++)
                        fprintf(stderr, "found: %s\n", users.items[i]);
        disk_users_clear(&users);
}

void fake_make(void)
{
        if (!mkdtemp(root))
                exit(1);
        fake_file("programs/program", "");
        fake_file("programs/udevadm", "");
        fake_file("programs/ublkd", "");
        fake_file("programs/ublkd-helper", "");
        fake_link("proc/self/ns/user", "user:[1]");
        fake_link("proc/self/exe", fake_path("programs/ublkd"));
        fake_process("1", "systemd", "mnt:[1]");
}

void fake_remove(void)
{
        CHECK_INT(remove_tree(root), 0);
}

void disk_users_clear(struct disk_users *users)
{
        for (size_t i = 0; i < users->count; i++)
                free(users->items[i]);
        *users = (struct disk_users){.number = users->number};
}
