/* SPDX-License-Identifier: MIT */
/* Lends a ring the rights of an ordinary user. */
#include "ublkd/driver/ublk_ctl_user.h"

#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MSEC = 2000 }; /* a process of the user may stop the one that has its rights */

static int drop_capabilities(void)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};

        return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

/* In the process apart. Return the number of the personality, or -errno. */
static int take_and_register(struct io_uring *ring, uid_t uid, gid_t gid)
{
        int r;

        if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
                return -errno;
        r = drop_capabilities(); /* those of root are left */
        return r < 0 ? r : io_uring_register_personality(ring);
}

static int receive(int fd)
{
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int answer;

        if (poll(&ready, 1, PATIENCE_MSEC) != 1)
                return -ETIME;
        return read(fd, &answer, sizeof(answer)) == sizeof(answer) ? answer : -ESRCH;
}

int ctl_user_lend(struct io_uring *ring, uid_t uid, gid_t gid)
{
        _cleanup_close_ int from = -1, to = -1;
        int ends[2], r;
        pid_t child;

        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        from = ends[0];
        to = ends[1];
        child = fork();
        if (child < 0)
                return -errno;
        if (child == 0) {
                r = take_and_register(ring, uid, gid);
                _exit(write(to, &r, sizeof(r)) == sizeof(r) ? EXIT_SUCCESS : EXIT_FAILURE);
        }
        to = close_fd(to);
        r = receive(from);
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
        return r;
}
