/* SPDX-License-Identifier: MIT */
/* namespace: that of this process, of a child, and of the process around it. disk_container_test has namespaces within
 * namespaces. */
#include "ublkd/base/namespace.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UNTOUCHED = 4711 };

static int open_users(pid_t pid)
{
        char path[32];

        snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
        return open(path, O_RDONLY | O_CLOEXEC);
}

static void check_own(int own)
{
        _cleanup_close_ int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
        uid_t owner = UNTOUCHED;

        CHECK_INT(namespace_is_ours(own, "user"), 1);
        CHECK_INT(namespace_is_ours(own, "mnt"), 0);
        CHECK_INT(namespace_is_ours(own, "none"), -ENOENT);
        CHECK_INT(namespace_is_ours(-1, "user"), -EBADF);
        CHECK_INT(namespace_find_owner(own, &owner), 0);
        CHECK_INT(namespace_find_owner(none, &owner), -ENOTTY);
        CHECK_INT(owner, UNTOUCHED);
}

/* The process of a child: `around` is the namespace that it comes from. */
static int be_inside(int around, int ready, int end)
{
        uid_t owner = UNTOUCHED;
        char byte = 0;

        if (unshare(CLONE_NEWUSER) < 0)
                return CHECK_SKIP;
        CHECK_INT(namespace_is_ours(around, "user"), 0);
        CHECK_INT(namespace_find_owner(around, &owner), 0);
        CHECK_INT(owner, UNTOUCHED);
        CHECK_INT(write(ready, "y", 1), 1);
        CHECK_INT(read(end, &byte, 1), 0);
        return check_report();
}

/* Return the status of the test. */
static int check_child(int own)
{
        int ready[2], end[2], status = 0;
        uid_t owner = UNTOUCHED;
        char byte;
        pid_t child;

        CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
        CHECK_INT(pipe2(end, O_CLOEXEC), 0);
        child = fork();
        if (child == 0) {
                close_fd(end[1]);
                _exit(be_inside(own, ready[1], end[0]));
        }
        close_fd(ready[1]);
        close_fd(end[0]);
        if (read(ready[0], &byte, 1) == 1) {
                _cleanup_close_ int users = open_users(child);

                CHECK_INT(namespace_is_ours(users, "user"), 0);
                CHECK_INT(namespace_find_owner(users, &owner), 1);
                CHECK_INT(owner, geteuid());
        }
        close_fd(ready[0]);
        close_fd(end[1]);
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status));
        return WEXITSTATUS(status);
}

int main(void)
{
        _cleanup_close_ int own = open_users(getpid());
        int status;

        check_own(own);
        status = check_child(own);
        return check_failures > 0 || status == 0 ? check_report() : status;
}
