/* SPDX-License-Identifier: MIT */
/* fd_result: a descriptor, an error, or neither. */
#include "ublkd/base/fd_result.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static int ends[2];

static void test_a_descriptor(void)
{
        _cleanup_close_ int found = -1;
        int pipe_ends[2];
        char byte = 0;

        CHECK_INT(pipe2(pipe_ends, O_CLOEXEC), 0);
        CHECK(fd_result_send(ends[1], pipe_ends[0]));
        CHECK_INT(close(pipe_ends[0]), 0);
        found = fd_result_receive(ends[0], 0);
        CHECK(found >= 0 && fcntl(found, F_GETFD) == FD_CLOEXEC);
        CHECK(write(pipe_ends[1], "x", 1) == 1 && read(found, &byte, 1) == 1 && byte == 'x');
        CHECK_INT(close(pipe_ends[1]), 0);
}

static void test_an_error(void)
{
        CHECK(fd_result_send(ends[1], -ENOENT));
        CHECK_INT(fd_result_receive(ends[0], 0), -ENOENT);
}

static void test_nothing(void)
{
        static const int no_error = 3; /* a number without its descriptor */

        CHECK_INT(fd_result_receive(ends[0], MSG_DONTWAIT), -EPIPE);
        CHECK_INT(send(ends[1], &no_error, sizeof(no_error), 0), sizeof(no_error));
        CHECK_INT(fd_result_receive(ends[0], 0), -EPIPE);
        CHECK_INT(close(ends[1]), 0);
        CHECK_INT(fd_result_receive(ends[0], 0), -EPIPE);
}

int main(void)
{
        if (!CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0))
                return check_report();
        test_a_descriptor();
        test_an_error();
        test_nothing();
        CHECK_INT(close(ends[0]), 0);
        return check_report();
}
