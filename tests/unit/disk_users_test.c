/* disk_users: on a made-up /proc and /sys. disk_search_test looks at the real ones. */
#include "ublkd/disk_users.h"

#include "check.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/disk_users_test.XXXXXX";

static const char *path_of(const char *path)
{
        static char full[PATH_MAX];

        snprintf(full, sizeof(full), "%s/%s", root, path);
        return full;
}

static void make_parents(const char *path)
{
        char part[PATH_MAX];

        strcpy(part, path);
        for (char *slash = strchr(part + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                CHECK(mkdir(part, 0755) >= 0 || errno == EEXIST);
                *slash = '/';
        }
}

static void make_file(const char *path, const char *text)
{
        const char *full = path_of(path);
        FILE *file;

        make_parents(full);
        file = fopen(full, "we");
        if (CHECK(file)) {
                fputs(text, file);
                fclose(file);
        }
}

static void make_link(const char *path, const char *target)
{
        const char *full = path_of(path);

        make_parents(full);
        CHECK_INT(symlink(target, full), 0);
}

/* The mounts of the namespaces mnt:[1] and mnt:[2]. */
static const char *const mounts[] = {
        "36 35 98:0 / /mnt\\040one rw,noatime master:1 - ext4 /dev/ublkb0 rw\n"
        "37 35 98:1 / /other rw - ext4 /dev/ublkb01 rw\n"
        "38 35 0:40 /sub /btrfs rw - btrfs /dev/ublkb2p1 rw\n"
        "41 35 259:3 / /by-link rw - ext4 /dev/ublk/by-name/data rw\n"
        "42 35 0:50 / /claimed rw - tmpfs /dev/ublkb10 rw\n"
        "43 35 0:51 / /claimed2 rw - fuse.sshfs /dev/ublkb10 rw\n"
        "nonsense\n39 35 0:41 / /none rw - tmpfs\n40 - \n",
        "99 1 98:0 / /elsewhere rw - xfs /dev/ublkb0 rw\n",
};

static void make_process(const char *pid, const char *comm, const char *namespace)
{
        char path[64], text[64];

        snprintf(path, sizeof(path), "proc/%s/comm", pid);
        snprintf(text, sizeof(text), "%s\n", comm);
        make_file(path, text);
        snprintf(path, sizeof(path), "proc/%s/exe", pid);
        make_link(path, "/usr/bin/program");
        snprintf(path, sizeof(path), "proc/%s/ns/mnt", pid);
        make_link(path, namespace);
        snprintf(path, sizeof(path), "proc/%s/mountinfo", pid);
        make_file(path, mounts[strcmp(namespace, "mnt:[1]") != 0]);
        snprintf(path, sizeof(path), "proc/%s/fd/0", pid);
        make_link(path, "/dev/null");
        snprintf(path, sizeof(path), "proc/%s/maps", pid);
        make_file(path, "7f00-7f01 r--p 00000000 08:01 1 /usr/lib/libc.so.6\n");
}

/* In this machine what is below /dev is a node, and a file of that name elsewhere is none. */
static bool leads_to_dev(int directory, const char *name)
{
        char target[PATH_MAX];
        ssize_t n = readlinkat(directory, name, target, sizeof(target));

        return n > 5 && strncmp(target, "/dev/", 5) == 0;
}

static void find(struct disk_users *disks, size_t count)
{
        char proc[PATH_MAX], sys[PATH_MAX];
        const struct disk_users_roots roots = {.proc = proc, .sys = sys, .is_block = leads_to_dev};

        strcpy(proc, path_of("proc"));
        strcpy(sys, path_of("sys"));
        CHECK_INT(disk_users_find(&roots, disks, count), 0);
}

/* Asks about all other disks as well: each gets its own users. */
static void check_users(int number, ...)
{
        enum { DISKS = 12 };
        struct disk_users disks[DISKS] = {}, users;
        size_t count = 0;
        va_list wanted;

        for (int i = 0; i < DISKS; i++)
                disks[i].number = (number + 1 + i) % DISKS;
        find(disks, DISKS);
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
                        fprintf(stderr, "nobody said: %s\n", item);
                count++;
        }
        va_end(wanted);
        if (!CHECK_INT(users.count, count))
                for (size_t i = 0; i < users.count; i++)
                        fprintf(stderr, "found: %s\n", users.items[i]);
        disk_users_clear(&users);
}

static void make_machine(void)
{
        make_file("proc/swaps", "Filename\t\t\t\tType\t\tSize\tUsed\tPriority\n/dev/ublkb3p2                 "
                                "          partition\t8\t0\t-2\n/swap\\040file file 8 0 -3\n");
        make_file("proc/uptime", "1 1\n");
        make_process("1", "systemd", "mnt:[1]");
        make_process("20", "bash", "mnt:[1]"); /* sees the same mounts */
        make_process("30", "dd", "mnt:[2]");
        make_link("proc/30/fd/3", "/dev/ublkb0");
        make_link("proc/30/fd/4", "/dev/ublkb0");
        make_process("40", "fio", "mnt:[1]");
        make_link("proc/40/fd/9", "/dev/ublkb0p12");
        make_process("41", "mapper", "mnt:[1]");
        make_file("proc/41/maps", "7f00-7f01 rw-s 00000000 00:05 99                         /dev/ublkb0\n");
        make_link("proc/41/map_files/7f00-7f01", "/dev/ublkb0");
        make_process("42", "leftover", "mnt:[1]");
        make_link("proc/42/fd/3", "/dev/ublkb5 (deleted)");
        make_process("50", "(udev-worker)", "mnt:[1]");
        make_link("proc/50/fd/3", "/dev/ublkb6");
        make_process("51", "ublkd-worker", "mnt:[1]");
        make_link("proc/51/fd/3", "/dev/ublkc0");
        make_link("proc/51/fd/4", "socket:[ublkb0]");
        make_process("53", "ublkd-worker", "mnt:[1]"); /* of a disk on a disk */
        make_link("proc/53/fd/5", "/dev/ublkb8");
        make_process("52", "other", "mnt:[1]");
        make_link("proc/52/fd/3", "/dev/ublkb07");
        make_link("proc/52/fd/4", "/dev/ublkb0px");
        make_file("proc/60/cmdline", "a process that has just gone");
        make_file("sys/block/ublkb4/holders/dm-0", "");
        make_file("sys/block/ublkb4/ublkb4p1/holders/md127", "");
        make_file("sys/block/ublkb4/queue/holders/no", "");
        make_link("sys/dev/block/259:3", "../../devices/virtual/block/ublkb7/ublkb7p1");
}

/* What any user can do to make a disk look used. */
static void make_pretenders(void)
{
        make_file("proc/filesystems", "nodev\ttmpfs\n\text4\nnodev\tfuse\n\tfuseblk\n\tbtrfs\n");
        make_process("70", "namesake", "mnt:[1]");
        make_link("proc/70/fd/3", "/tmp/ublkb10");
        make_process("71", "mapper", "mnt:[1]");
        make_file("proc/71/maps", "00400000-7f01 rw-s 00000000 08:01 99            /tmp/ublkb10\n");
        make_link("proc/71/map_files/400000-7f01", "/tmp/ublkb10");
        make_process("72", "o_path", "mnt:[1]");
        make_link("proc/72/fd/3", "/dev/ublkb10");
        make_file("proc/72/fdinfo/3", "pos:\t0\nflags:\t012000000\nmnt_id:\t9\n");
        make_file("sys/block/loop7/loop/backing_file", "/tmp/ublkb10\n");
        make_file("sys/block/loop8/loop/backing_file", "/dev/shm/ublkb10 (deleted)\n");
}

/* What the kernel has open without telling of a holder. */
static void make_stacks(void)
{
        make_file("sys/block/loop0/loop/backing_file", "/dev/ublkb11\n");
        make_file("sys/block/loop12/loop/backing_file", "/dev/ublkb11p3 (deleted)\n");
        make_file("sys/block/loop2/loop/backing_file", "/dev/ublkb110\n");
        make_file("sys/block/loop3/size", "0\n"); /* nothing behind it */
        make_file("sys/block/zram0/backing_dev", "/dev/ublkb11\n");
        make_file("sys/block/zram1/backing_dev", "none\n");
        make_file("sys/kernel/config/nvmet/subsystems/nqn/namespaces/5/device_path", "/dev/ublkb11\n");
        make_file("sys/kernel/config/target/core/iblock_0/data/udev_path", "/dev/ublkb11p1\n");
        make_file("sys/kernel/config/target/core/fileio_0/other/udev_path", "/srv/ublkb11\n");
}

static void test_made_up_machine(void)
{
        make_machine();
        make_pretenders();
        make_stacks();
        check_users(0, "mounted at /mnt one", "mounted at /elsewhere", "process 30 (dd)", "process 40 (fio)",
                "process 41 (mapper)", NULL);
        check_users(1, NULL);
        check_users(2, "mounted at /btrfs", NULL);
        check_users(3, "swap on /dev/ublkb3p2", NULL);
        check_users(4, "part of /dev/dm-0", "part of /dev/md127", NULL);
        check_users(5, "process 42 (leftover)", NULL);
        check_users(6, NULL);                        /* a probe by udev is no user */
        check_users(7, "mounted at /by-link", NULL); /* whatever name it was mounted by */
        check_users(8, "process 53 (ublkd-worker)", NULL);
        check_users(10, NULL);
        check_users(11, "backing /dev/loop0", "backing /dev/loop12", "backing /dev/zram0",
                "exported by the NVMe target as nqn", "exported by the SCSI target as data", NULL);
}

/* As many workers as would fill the table of namespaces, if they were looked at; containers are anywhere
 * between them, as the directory has it. */
static void test_workers_do_not_hide_containers(void)
{
        enum { CONTAINERS = DISK_USERS_MAX, PROCESSES = 400 };
        char path[64], pid[16], namespace[32], text[96];
        struct disk_users users = {.number = 10};

        for (unsigned i = 0; i < PROCESSES; i++) {
                bool container = i % (PROCESSES / CONTAINERS) == 0;

                snprintf(pid, sizeof(pid), "%u", 2000 + i);
                snprintf(namespace, sizeof(namespace), "mnt:[%s]", pid);
                make_process(pid, container ? "container" : "ublkd-worker", namespace);
                if (!container)
                        continue;
                snprintf(text, sizeof(text), "99 1 98:0 / /in-%s rw - xfs /dev/ublkb10 rw\n", pid);
                snprintf(path, sizeof(path), "proc/%s/mountinfo", pid);
                make_file(path, text);
        }
        find(&users, 1);
        CHECK_INT(users.count, CONTAINERS);
        disk_users_clear(&users);
}

static void test_too_many_users(void)
{
        char pid[16], path[64];
        struct disk_users users = {.number = 9};

        for (int i = 0; i < 40; i++) {
                snprintf(pid, sizeof(pid), "%d", 1000 + i);
                make_process(pid, "many", "mnt:[1]");
                snprintf(path, sizeof(path), "proc/%s/fd/7", pid);
                make_link(path, "/dev/ublkb9");
                snprintf(path, sizeof(path), "proc/%s/fd/8", pid); /* once more is no other user */
                make_link(path, "/dev/ublkb9p1");
        }
        find(&users, 1);
        CHECK_INT(users.count, DISK_USERS_MAX);
        CHECK_INT(users.dropped, 40 - DISK_USERS_MAX);
        disk_users_clear(&users);
}

/* Who waits for a search that hangs can be told at which process. */
static void test_where_it_is(void)
{
        char proc[PATH_MAX], sys[PATH_MAX];
        struct disk_users_place place = {};
        const struct disk_users_roots roots = {
                .proc = proc, .sys = sys, .is_block = leads_to_dev, .place = &place};
        struct disk_users users = {.number = 9};

        make_process("7777", "last", "mnt:[1]");
        strcpy(proc, path_of("proc"));
        strcpy(sys, path_of("sys"));
        CHECK_INT(disk_users_find(&roots, &users, 1), 0);
        CHECK(place.pid > 0 && place.comm[0]);
        disk_users_clear(&users);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *ftw)
{
        (void)info;
        (void)kind;
        (void)ftw;
        return remove(path);
}

int main(void)
{
        if (!mkdtemp(root))
                return 1;
        test_made_up_machine();
        test_workers_do_not_hide_containers();
        test_too_many_users();
        test_where_it_is();
        CHECK_INT(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
        return check_report();
}
