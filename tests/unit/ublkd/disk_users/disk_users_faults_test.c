/* SPDX-License-Identifier: MIT */
/* disk_users: if something cannot be read, the answer is "unknown", never "unused". */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/disk_users/fake_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the kernel refuses, once: the opening or the reading of what has that name. */
static struct {
        const char *name;
        int error;
} refused;

int __real_openat(int directory, const char *name, int flags, ...);
int __wrap_openat(int directory, const char *name, int flags, ...);
ssize_t __real_readlinkat(int directory, const char *name, char *text, size_t size);
ssize_t __wrap_readlinkat(int directory, const char *name, char *text, size_t size);

static bool is_refused(const char *name)
{
        if (!refused.name || strcmp(refused.name, name) != 0)
                return false;
        errno = refused.error;
        return true;
}

int __wrap_openat(int directory, const char *name, int flags, ...)
{
        return is_refused(name) ? -1 : __real_openat(directory, name, flags);
}

ssize_t __wrap_readlinkat(int directory, const char *name, char *text, size_t size)
{
        return is_refused(name) ? -1 : __real_readlinkat(directory, name, text, size);
}

/* No users found, and the answer is incomplete. */
static void check_gap(int error, const char *words)
{
        struct disk_users users = {.number = 9};
        char gap[192];

        CHECK_INT(fake_look(&users, 1, gap), error);
        CHECK_INT(users.count, 0);
        if (!CHECK(strstr(gap, words)))
                fprintf(stderr, "\"%s\" does not say: %s\n", gap, words);
        disk_users_clear(&users);
}

/* Whatever cannot be read makes the answer "not known"; what has ended does not. */
static void test_what_cannot_be_read(void)
{
        static const struct {
                const char *name, *words;
        } needed[] = {
                {"110",       "a process of /proc cannot be looked at"        },
                {"ns/mnt",    "the mounts of process "                        },
                {"root",      "the mounts of process "                        },
                {"mountinfo", "the mounts of process "                        },
                {"fd",        "the descriptors of process "                   },
                {"only-here", "the descriptors of process 110 (unlike others)"},
                {"task",      "the threads of process 110 (unlike others)"    },
                {"112",       "the threads of process 110 (unlike others)"    },
                {"maps",      "the mappings of process "                      },
        };
        static const int errors[] = {EACCES, EPERM, EIO, EMFILE};

        fake_process("110", "unlike others", "mnt:[110]");
        fake_file("proc/110/task/112/comm", "");
        fake_link("proc/110/fd/only-here", "/dev/null");
        for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
                refused.name = needed[i].name;
                for (size_t j = 0; j < ARRAY_SIZE(errors); j++) {
                        refused.error = errors[j];
                        check_gap(-errors[j], needed[i].words);
                }
                refused.error = ENOMEM;
                {
                        struct disk_users users = {.number = 9};
                        char gap[192];

                        CHECK_INT(fake_look(&users, 1, gap), -ENOMEM);
                        disk_users_clear(&users);
                }
                for (size_t j = 0; j < 2; j++) {
                        refused.error = j ? ESRCH : ENOENT;
                        fake_check_users(9, NULL);
                }
        }
        refused.name = NULL;
        fake_check_users(9, NULL);
}

/* A user that was found is one, whatever else could not be read. */
static void test_a_user_beside_what_cannot_be_read(void)
{
        struct disk_users users = {.number = 8};
        char gap[192];

        refused.name = "only-here";
        refused.error = EACCES;
        CHECK_INT(fake_look(&users, 1, gap), -EACCES);
        CHECK_INT(users.count, 1);
        refused.name = NULL;
        disk_users_clear(&users);
}

/* Puts `text` (NULL: a directory) in the place of a file, looks, and puts it back. */
static void check_broken(const char *path, const char *text, int error, const char *words)
{
        char aside[PATH_MAX];
        bool was_there;

        strcpy(aside, fake_path("aside"));
        was_there = rename(fake_path(path), aside) == 0;
        if (text) {
                fake_file(path, text);
        } else {
                fake_parents(fake_path(path));
                CHECK_INT(mkdir(fake_path(path), 0755), 0);
        }
        check_gap(error, words);
        CHECK_INT(remove(fake_path(path)), 0);
        if (was_there)
                CHECK_INT(rename(aside, fake_path(path)), 0);
}

/* What is cut, or of another shape than the kernel's. */
static void test_what_cannot_be_understood(void)
{
        char long_path[PATH_MAX + 1];

        memset(long_path, '/', sizeof(long_path) - 1);
        long_path[sizeof(long_path) - 1] = '\0';
        check_broken("proc/110/mountinfo", NULL, -EISDIR, "the mounts of process 110 (unlike others)");
        check_broken(
                "proc/110/mountinfo", "99 1 98:0 / /whole rw - x", -EBADMSG, "the mounts of process 110");
        check_broken("proc/110/mountinfo", "99 1 98:0 / - xfs /dev/sda rw\n", -EBADMSG,
                "the mounts of process 110");
        check_broken("proc/110/mountinfo", "99 1 98:0", -EBADMSG, "the mounts of process 110");
        check_broken("proc/110/fd", "", -ENOTDIR, "the descriptors of process 110");
        check_broken("proc/110/maps", NULL, -EISDIR, "the mappings of process 110");
        check_broken("proc/110/maps", "7f00-7f01 rw-s /x", -EBADMSG, "the mappings of process 110");
        check_broken("proc/swaps", NULL, -EISDIR, "/proc/swaps");
        check_broken("sys/block/ublkb9/dev", NULL, -EISDIR, "the disk cannot be read in /sys");
        check_broken("sys/block/ublkb9/dev", "259", -EBADMSG, "the disk cannot be read in /sys");
        check_broken("sys/block/loop9/loop/backing_file", NULL, -EISDIR, "what is built on disks");
        check_broken("sys/block/loop9/loop/backing_file", long_path, -ENAMETOOLONG, "what is built on disks");
        CHECK_INT(mkdir(fake_path("sys/block/ublkb9"), 0755), -1);
        fake_link("sys/block/ublkb9/holders", "holders"); /* a loop */
        check_gap(-EIO, "what is built on disks");
        CHECK_INT(unlink(fake_path("sys/block/ublkb9/holders")), 0);
        CHECK_INT(rename(fake_path("proc/1"), fake_path("proc/one")), 0);
        check_gap(-EPERM, "hidepid");
        CHECK_INT(rename(fake_path("proc/one"), fake_path("proc/1")), 0);
        fake_check_users(9, NULL);
}
int main(void)
{
        fake_make();
        fake_process("42", "opener", "mnt:[1]");
        fake_link("proc/42/fd/3", "/dev/ublkb8");
        test_what_cannot_be_read();
        test_a_user_beside_what_cannot_be_read();
        test_what_cannot_be_understood();
        fake_remove();
        return check_report();
}
