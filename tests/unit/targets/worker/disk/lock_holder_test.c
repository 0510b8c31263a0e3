/* SPDX-License-Identifier: MIT */
/* lock_holder: what holders are, and which of several is named, on a made-up /proc. */
#include "targets/worker/disk/lock_holder.h"
#include "tests/unit/check.h"
#include "tests/unit/remove_tree.h"

#include <stdlib.h>
#include <sys/stat.h>

enum { INODE = 4711 };

static char proc[] = "/tmp/lock_holder_test.XXXXXX";
static const struct flock wanted = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 4096};

static void write_file(const char *pid, const char *name, const char *text, size_t size)
{
        char path[256];
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s/%s", proc, pid, name);
        file = fopen(path, "we");
        if (CHECK(file)) {
                CHECK_INT(fwrite(text, 1, size, file), size);
                CHECK_INT(fclose(file), 0);
        }
}

static void make_folder(const char *name)
{
        char path[256];

        snprintf(path, sizeof(path), "%s/%s", proc, name);
        CHECK_INT(mkdir(path, 0700), 0);
}

/* `arguments`: of `size` bytes, with a NUL behind each, as in /proc/PID/cmdline. */
static void make_holder(const char *pid, const char *command, const char *arguments, size_t size)
{
        static const char lock[] = "pos:\t0\nlock:\t1: OFDLCK  ADVISORY  WRITE -1 08:01:4711 0 EOF\n";
        char folder[64];

        make_folder(pid);
        snprintf(folder, sizeof(folder), "%s/fdinfo", pid);
        make_folder(folder);
        write_file(pid, "fdinfo/3", lock, strlen(lock));
        write_file(pid, "comm", command, strlen(command));
        write_file(pid, "cmdline", arguments, size);
}

static void a_kind_is_that_of_the_command(void)
{
        static const struct {
                const char *pid, *command;
                enum holder_kind kind;
                const char *name;
        } cases[] = {
                {"10", "ublkd\n",         HOLDER_SUPERVISOR, "ublkd"            },
                {"11", "ublkd-worker\n",  HOLDER_WORKER,     "ublkd-worker data"},
                {"12", "ublkd-volumes\n", HOLDER_OTHER,      "ublkd-volumes"    },
                {"13", "ublkd-workers\n", HOLDER_OTHER,      "ublkd-workers"    },
                {"14", "qemu\n",          HOLDER_OTHER,      "qemu"             },
        };
        static const char arguments[] = "/usr/libexec/ublkd-worker\0data";
        struct lock_holder holder;

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                make_holder(cases[i].pid, cases[i].command, arguments, sizeof(arguments));
                if (!CHECK(lock_holder_name(proc, (pid_t)strtol(cases[i].pid, NULL, 10), &holder)))
                        continue;
                CHECK_INT(holder.kind, cases[i].kind);
                CHECK_STR(holder.name, cases[i].name);
        }
        CHECK(!lock_holder_name(proc, 99, &holder));
}

/* The processes of the case above all have the lock; a folder is read in any order. */
static void the_one_that_serves_is_named(void)
{
        struct lock_holder holder = {};

        CHECK(lock_holder_find(proc, INODE, &wanted, &holder));
        CHECK_INT(holder.pid, 11);
        CHECK_INT(holder.kind, HOLDER_WORKER);
        CHECK(!lock_holder_find(proc, INODE + 1, &wanted, &holder));
}

/* An argument of a worker is the name of its disk; a text of it decides nothing. */
static void a_process_is_not_a_worker_by_its_arguments(void)
{
        static const char arguments[] = "/usr/bin/qemu\0ublkd-worker data";
        struct lock_holder holder = {};

        make_holder("20", "qemu\n", arguments, sizeof(arguments));
        CHECK(lock_holder_name(proc, 20, &holder));
        CHECK_INT(holder.kind, HOLDER_OTHER);
        CHECK_STR(holder.name, "qemu");
}

int main(void)
{
        if (!CHECK(mkdtemp(proc)))
                return check_report();
        a_kind_is_that_of_the_command();
        the_one_that_serves_is_named();
        a_process_is_not_a_worker_by_its_arguments();
        CHECK_INT(remove_tree(proc), 0);
        return check_report();
}
