/* SPDX-License-Identifier: MIT */
/* filesystem_open: an open that hangs is given up. A fifo without a writer is in the place of a disk that waits for its worker. */
#include "ublkd/filesystems/filesystem_open.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG_MSEC = 60000, SHORT_MSEC = 50 };

static char directory[] = "/tmp/ublkd-test-open-XXXXXX";

static int node_of(const char *name)
{
        char path[64];

        snprintf(path, sizeof(path), "%s/%s", directory, name);
        return open(path, O_PATH | O_CLOEXEC);
}

static void test_the_descriptor_is_that_of_the_file(void)
{
        _cleanup_close_ int node = node_of("file"), fd = -1;
        char text[8] = "";

        fd = filesystem_open_in_time(node, O_RDONLY | O_CLOEXEC, LONG_MSEC);
        CHECK(fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
        CHECK_INT(read(fd, text, sizeof(text) - 1), 4);
        CHECK_STR(text, "text");
        CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

static void test_the_error_is_that_of_the_open(void)
{
        _cleanup_close_ int node = node_of("file");

        CHECK_INT(filesystem_open_in_time(node, O_RDONLY | O_DIRECTORY, LONG_MSEC), -ENOTDIR);
}

/* The child that hangs has no descriptor of its parent, and ends. */
static void test_an_open_that_hangs_is_given_up(void)
{
        _cleanup_close_ int node = node_of("fifo"), reader = -1;
        int pipe_of_parent[2];

        CHECK_INT(pipe2(pipe_of_parent, O_CLOEXEC), 0);
        reader = pipe_of_parent[0];
        CHECK_INT(filesystem_open_in_time(node, O_RDONLY | O_CLOEXEC, SHORT_MSEC), -ETIMEDOUT);
        close_fd(pipe_of_parent[1]);
        CHECK_INT(poll(&(struct pollfd){.fd = reader, .events = POLLIN}, 1, LONG_MSEC), 1);
        filesystem_open_wait();
        CHECK(!filesystem_open_lingers());
}

int main(void)
{
        char file[64], fifo[64];
        FILE *stream;

        if (!CHECK(mkdtemp(directory)))
                return check_report();
        snprintf(file, sizeof(file), "%s/file", directory);
        snprintf(fifo, sizeof(fifo), "%s/fifo", directory);
        stream = fopen(file, "we");
        CHECK(stream && fputs("text", stream) >= 0 && fclose(stream) == 0);
        CHECK_INT(mkfifo(fifo, 0600), 0);
        test_the_descriptor_is_that_of_the_file();
        test_the_error_is_that_of_the_open();
        test_an_open_that_hangs_is_given_up();
        CHECK_INT(unlink(file), 0);
        CHECK_INT(unlink(fifo), 0);
        CHECK_INT(rmdir(directory), 0);
        return check_report();
}
