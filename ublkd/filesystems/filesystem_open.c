/* SPDX-License-Identifier: MIT */
/* Opens a disk in a child, which passes the descriptor on. */
#include "ublkd/filesystems/filesystem_open.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/fd_path.h"
#include "ublkd/base/fd_result.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_LINK, CHILD_NODE, CHILD_FIRST_FREE }; /* its descriptors */

/* In the child, which may stay in the kernel when its parent is gone, and must keep nothing of it open. */
static bool open_and_send(int link, int node, int flags, pid_t parent)
{
        int fd;

        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
                return false;
        link = fcntl(link, F_DUPFD, CHILD_FIRST_FREE);
        node = fcntl(node, F_DUPFD, CHILD_FIRST_FREE);
        if (link < 0 || node < 0 || dup2(link, CHILD_LINK) < 0 || dup2(node, CHILD_NODE) < 0
                || close_range(CHILD_FIRST_FREE, ~0U, 0) < 0)
                return false;
        fd = open(fd_path(CHILD_NODE).text, flags);
        return fd_result_send(CHILD_LINK, fd < 0 ? -errno : fd);
}

int filesystem_open_in_time(int node, int flags, int msec)
{
        _cleanup_close_ int ours = -1, theirs = -1;
        pid_t self = getpid(), pid;
        int pair[2], n, r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        ours = pair[0];
        theirs = pair[1];
        pid = fork();
        if (pid == 0)
                _exit(open_and_send(theirs, node, flags, self) ? 0 : 1);
        if (pid < 0)
                return -errno;
        theirs = close_fd(theirs); /* so the death of the child shows */
        do
                n = poll(&(struct pollfd){.fd = ours, .events = POLLIN}, 1, msec);
        while (n < 0 && errno == EINTR);
        r = n > 0 ? fd_result_receive(ours, MSG_DONTWAIT) : n < 0 ? -errno : -ETIMEDOUT;
        (void)kill(pid, SIGKILL);
        /* One that hangs: filesystem_open_wait(). */
        (void)waitid(P_PID, (id_t)pid, &(siginfo_t){}, WEXITED | (n > 0 ? 0 : WNOHANG));
        return r;
}

bool filesystem_open_lingers(void)
{
        siginfo_t info = {};

        return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void filesystem_open_wait(void)
{
        while (waitid(P_ALL, 0, &(siginfo_t){}, WEXITED) == 0 || errno == EINTR)
                ;
}
