/* SPDX-License-Identifier: MIT */
/* disk_container: who may know of a process in a container, and real processes in user namespaces of their own. */
#include "ublkd/disk_users/disk_look.h"

#include "tests/unit/check.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { USER = 4001 };

static bool write_file(const char *path, const char *text)
{
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

        return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* A user or group without a place in the namespace may not make another one in it. */
static bool enter_namespace(void)
{
        char users[32], groups[32];

        snprintf(users, sizeof(users), "0 %u 1", (unsigned)geteuid());
        snprintf(groups, sizeof(groups), "0 %u 1", (unsigned)getegid());
        return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_file("/proc/self/uid_map", users)
               && write_file("/proc/self/setgroups", "deny") && write_file("/proc/self/gid_map", groups);
}

/* Start a process of that user with as many user namespaces, one within the other. Return its pid; 0: this machine does
 * not allow it. */
static pid_t start(uid_t user, int levels)
{
        int ready[2];
        char byte = 0;
        pid_t child;

        CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
        child = fork();
        if (child == 0) {
                bool good = (geteuid() == user || setresuid(user, user, user) == 0)
                            && prctl(PR_SET_DUMPABLE, 1) == 0;

                for (int i = 0; good && i < levels; i++)
                        good = enter_namespace();
                if (write(ready[1], good ? "y" : "n", 1) != 1)
                        _exit(1);
                for (;;)
                        (void)pause();
        }
        close_fd(ready[1]);
        CHECK_INT(read(ready[0], &byte, 1), 1);
        close_fd(ready[0]);
        if (byte == 'y')
                return child;
        CHECK_INT(kill(child, SIGKILL), 0);
        CHECK_INT(waitpid(child, NULL, 0), child);
        return 0;
}

static bool has_owner(pid_t pid, uid_t *ret)
{
        const struct disk_users_roots roots = {.proc = "/proc"};
        const struct look look = {.roots = &roots};
        char path[32];

        snprintf(path, sizeof(path), "/proc/%d", (int)pid);
        _cleanup_close_ int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        const struct process process = {.directory = directory};

        return disk_container_owner(&look, &process, ret);
}

/* Return false if this machine does not allow such processes. */
static bool check_owner(uid_t user, int levels)
{
        pid_t pid = start(user, levels);
        uid_t owner = 0;

        if (pid == 0)
                return false;
        CHECK_INT(has_owner(pid, &owner), levels > 0);
        CHECK_INT(owner, levels > 0 ? user : 0);
        CHECK_INT(kill(pid, SIGKILL), 0);
        CHECK_INT(waitpid(pid, NULL, 0), pid);
        return true;
}

static void check_readers(void)
{
        static const struct {
                uid_t uid, owner, reader;
                const char *phrase;
        } rows[] = {
                {0,                 1000, 0,                 "mounted at /mnt in a container or sandbox of user 1000"},
                {1000,              1000, 1000,              "mounted at /mnt in a container or sandbox of user 1000"},
                {100005,            1000, 1000,              "mounted at /mnt in a container or sandbox of user 1000"},
                {DISK_USER_UNKNOWN, 1000, 1000,              "mounted at /mnt in a container or sandbox of user 1000"},
                {1000,              0,    1000,              "mounted at /mnt in a container or sandbox of user 0"   },
                {0,                 0,    0,                 "mounted at /mnt in a container or sandbox of user 0"   },
                {DISK_USER_UNKNOWN, 0,    DISK_USER_UNKNOWN,
                 "mounted at /mnt in a container or sandbox of user 0"                                               },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct disk_users disk = {};

                CHECK_INT(disk_container_add_inner(&disk, rows[i].uid, rows[i].owner, "mounted at /mnt"), 0);
                CHECK_INT(disk.count, 1);
                CHECK_INT(disk.uids[0], rows[i].reader);
                CHECK_STR(disk.items[0], rows[i].phrase);
                free(disk.items[0]);
        }
}

int main(void)
{
        uid_t user = geteuid() == 0 ? USER : geteuid();

        check_readers();
        CHECK(check_owner(user, 0));
        for (int levels = 1; levels <= 3; levels++) /* the users of the inner ones are not known here */
                if (!check_owner(user, levels))
                        return check_failures > 0 ? check_report() : CHECK_SKIP;
        return check_report();
}
