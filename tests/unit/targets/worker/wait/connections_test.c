/* SPDX-License-Identifier: MIT */
/* A connection that is given up: what has begun there ends, and moves nothing on the one that comes after
 * it. */
#include "tests/unit/targets/worker/wait/wait_world.h"

#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { PLACE = TARGET_QUEUE_FILE, LONG = 4 << 20 };

/* Two connections: [0] is ours, [1] is the peer. The old one is file 0 and in PLACE. */
static int old[2], new[2];
static char memory[LONG];
static int received, sent, cancelled, set;

static bool begin(void)
{
        received = sent = cancelled = set = -EINPROGRESS;
        desc = (struct target_desc){.name = "test", .needs = TARGET_NEEDS_NETWORK, .waits.files = 1};
        return CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, old), 0)
               && CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, new), 0) && world_open(old, 1)
               && CHECK_INT(target_queue_set_file(&loop.queue, PLACE, old[0]), 0) && world_run();
}

static void end(void)
{
        world_close();
        for (unsigned i = 0; i < 2; i++) {
                old[i] = close_fd(old[i]);
                new[i] = close_fd(new[i]);
        }
}

struct stream {
        unsigned file;
        uint32_t length;
};

static void recv_co(void *argument)
{
        const struct stream *stream = argument;

        received = await_recv(&loop.queue, stream->file, memory, stream->length);
}

static void send_co(void *argument)
{
        const struct stream *stream = argument;

        sent = await_send(&loop.queue, stream->file, memory, stream->length);
}

static void cancel_co(void *argument)
{
        const struct stream *stream = argument;

        cancelled = await_cancel(&loop.queue, stream->file);
}

/* As a target does after a lost connection. */
static void replace_co(void *argument)
{
        (void)argument;
        set = target_queue_set_file(&loop.queue, PLACE, new[0]);
        old[0] = close_fd(old[0]);
}

static int unread(int fd)
{
        int bytes = -1;

        CHECK_INT(ioctl(fd, FIONREAD, &bytes), 0);
        return bytes;
}

static bool is_full(int fd)
{
        struct pollfd room = {.fd = fd, .events = POLLOUT};

        return CHECK(poll(&room, 1, 0) >= 0) && !(room.revents & POLLOUT);
}

/* ---- another file in the place ---- */

static void test_no_message_of_two_connections(void)
{
        struct stream stream = {.file = PLACE, .length = 6};

        if (!begin())
                return;
        CHECK_INT(write(old[1], "OLD", 3), 3);
        CHECK_INT(write(new[1], "NEW", 3), 3);
        start(recv_co, &stream);
        while (unread(old[0]) > 0 && CHECK_INT(io_loop_submit(&loop, false), 0))
                continue;
        start(replace_co, NULL);
        old[1] = close_fd(old[1]); /* the part ends, short */
        CHECK_INT(loop_drive(&loop), 0);
        CHECK_INT(set, 0);
        CHECK_INT(received, -ECANCELED);
        CHECK_INT(unread(new[0]), 3);
        end();
}

/* Its entry was prepared, and not submitted, when there was another file. */
static void test_an_entry_keeps_its_file(void)
{
        struct stream stream = {.file = PLACE, .length = 3};

        if (!begin())
                return;
        start(send_co, &stream);
        start(replace_co, NULL);
        CHECK_INT(loop_drive(&loop), 0);
        CHECK_INT(set, 0);
        CHECK_INT(sent, 3);
        CHECK_INT(unread(old[1]), 3);
        CHECK_INT(unread(new[1]), 0);
        end();
}

/* What begins afterwards has the new one. */
static void test_the_next_call(void)
{
        struct stream stream = {.file = PLACE, .length = 3};

        if (!begin())
                return;
        start(replace_co, NULL);
        start(send_co, &stream);
        CHECK_INT(write(new[1], "NEW", 3), 3);
        start(recv_co, &stream);
        CHECK_INT(loop_drive(&loop), 0);
        CHECK_INT(sent, 3);
        CHECK_INT(unread(new[1]), 3);
        CHECK_INT(received, 3);
        CHECK(memcmp(memory, "NEW", 3) == 0);
        end();
}

/* ---- await_cancel() ---- */

static void cancel(struct stream *stream)
{
        start(cancel_co, stream);
        while (cancelled == -EINPROGRESS && CHECK_INT(loop_turn(&loop), 0))
                continue;
        CHECK_INT(cancelled, 1);
}

static void test_cancel_after_a_part_received(unsigned file)
{
        struct stream stream = {.file = file, .length = 6};

        if (!begin())
                return;
        CHECK_INT(write(old[1], "one", 3), 3);
        start(recv_co, &stream);
        while (unread(old[0]) > 0 && CHECK_INT(io_loop_submit(&loop, false), 0))
                continue;
        cancel(&stream);
        CHECK_INT(write(old[1], "two", 3), 3); /* ends what was not cancelled */
        CHECK_INT(loop_drive(&loop), 0);
        CHECK_INT(received, -ECANCELED);
        received = -EINPROGRESS; /* the connection is as it was for what begins now */
        stream.length = 3;
        start(recv_co, &stream);
        CHECK_INT(loop_drive(&loop), 0);
        CHECK_INT(received, 3);
        CHECK(memcmp(memory, "two", 3) == 0);
        end();
}

static void test_cancel_after_a_part_sent(unsigned file)
{
        struct stream stream = {.file = file, .length = LONG};

        if (!begin())
                return;
        start(send_co, &stream);
        while (!is_full(old[0]) && CHECK_INT(io_loop_submit(&loop, false), 0))
                continue;
        cancel(&stream);
        CHECK_INT(shutdown(old[1], SHUT_RDWR), 0); /* ends what was not cancelled */
        CHECK_INT(loop_drive(&loop), 0);
        CHECK_INT(sent, -ECANCELED);
        end();
}

int main(void)
{
        if (!io_uring_is_there())
                return CHECK_SKIP;
        for (holder = IO_LOOP_HELD_BY_RING; holder <= IO_LOOP_HELD_BY_PROCESS; holder++) {
                test_no_message_of_two_connections();
                test_an_entry_keeps_its_file();
                test_the_next_call();
                for (unsigned i = 0; i < 2; i++) {
                        test_cancel_after_a_part_received(i == 0 ? 0 : PLACE);
                        test_cancel_after_a_part_sent(i == 0 ? 0 : PLACE);
                }
        }
        return check_report();
}
