/* SPDX-License-Identifier: MIT */
/* Descriptors beside messages: who wants them gets them, and the kernel closes the others.
 *
 * Not in worker_msg_test.c, which is also run by an emulator of another architecture: QEMU's emulator of user programs
 * leaves open what does not fit into the buffer of a message. */
#include "ublkd/proto/worker_msg.h"

#include "tests/unit/check.h"

#include <fcntl.h>
#include <sys/socket.h>

/* The number of descriptors that this process has open. */
static unsigned open_fds(void)
{
        unsigned count = 0;

        for (int fd = 0; fd < 256; fd++)
                count += fcntl(fd, F_GETFD) >= 0;
        return count;
}

static void test_descriptors(void)
{
        const struct worker_msg live = {.type = WORKER_MSG_LIVE};
        const int given[_CONFIG_FD_MAX] = {[0 ... _CONFIG_FD_MAX - 1] = STDIN_FILENO};
        int got[_CONFIG_FD_MAX] = {[0 ... _CONFIG_FD_MAX - 1] = -1}, pair[2];
        struct worker_msg msg = {};
        unsigned before;

        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
        before = open_fds();
        CHECK_INT(worker_msg_send_fds(pair[0], &live, given), 0);
        CHECK_INT(worker_msg_receive_fds(pair[1], &msg, got), 1);
        CHECK_INT(msg.type, WORKER_MSG_LIVE);
        for (size_t i = 0; i < _CONFIG_FD_MAX; i++) {
                CHECK_INT(fcntl(got[i], F_GETFD), FD_CLOEXEC);
                close(got[i]);
        }
        CHECK_INT(worker_msg_send(pair[0], &live), 0);
        CHECK_INT(worker_msg_receive_fds(pair[1], &msg, got), 1);
        CHECK_INT(got[CONFIG_FD_LISTENER], -1); /* nothing came beside it */
        CHECK_INT(got[CONFIG_FD_REGION], -1);
        CHECK_INT(worker_msg_send_fds(pair[0], &live, given), 0);
        CHECK_INT(worker_report_receive(pair[1], &msg, got, 1), 1); /* who wants one gets no more */
        CHECK_INT(open_fds(), before + 1);
        close(got[0]);
        CHECK_INT(worker_msg_send_fds(pair[0], &live, given), 0);
        CHECK_INT(worker_msg_receive(pair[1], &msg), 1); /* who does not want them gets none */
        CHECK_INT(open_fds(), before);
        close(pair[0]);
        close(pair[1]);
}

int main(void)
{
        test_descriptors();
        return check_report();
}
