/* SPDX-License-Identifier: MIT */
/* Descriptors, time, sockets and work: what a coroutine waits for comes, and what a target has not declared
 * does not. */
#include "targets/worker/wait/wait_room_internal.h"
#include "tests/unit/targets/worker/wait/counted_memory.h"
#include "ublkd/base/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

#define MS UINT64_C(1000000)

/* Two ends of a stream: files 0 and 1. */
static int ends[2];

static bool begin_socket(unsigned needs, int flags)
{
        desc = (struct target_desc){.name = "test", .needs = needs};
        return CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0, ends), 0)
               && world_open(ends, 2) && world_run();
}

static void end_socket(void)
{
        world_close();
        close_fd(ends[0]);
        close_fd(ends[1]);
}

/* ---- descriptors ---- */

struct poll_call {
        unsigned file;
        short events;
        int result;
};

static void poll_co(void *argument)
{
        struct poll_call *call = argument;

        call->result = await_fd(&loop.queue, call->file, call->events);
}

static void test_poll(unsigned needs)
{
        struct poll_call reads = {.file = 0, .events = POLLIN, .result = -EINPROGRESS},
                         writes = {.file = 0, .events = POLLOUT, .result = -EINPROGRESS};

        if (!begin_socket(needs, 0))
                return;
        start(poll_co, &reads);
        start(poll_co, &writes);
        while (writes.result == -EINPROGRESS && CHECK_INT(loop_turn(&loop), 0))
                continue;
        CHECK_INT(writes.result, POLLOUT);
        CHECK_INT(reads.result, -EINPROGRESS);
        CHECK_INT(write(ends[1], "x", 1), 1);
        CHECK_INT(loop_drive(&loop), 0);
        CHECK_INT(reads.result, POLLIN);
        end_socket();
}

static void cancel_co(void *argument)
{
        *(int *)argument = await_cancel(&loop.queue, 0);
}

static void test_cancel(void)
{
        struct poll_call calls[3] = {
                {.file = 0, .events = POLLIN, .result = -EINPROGRESS},
                {.file = 0, .events = POLLIN, .result = -EINPROGRESS},
                {.file = 1, .events = POLLIN, .result = -EINPROGRESS},
        };
        int cancelled = -ENOTRECOVERABLE;

        if (!begin_socket(TARGET_NEEDS_POLL, 0))
                return;
        for (unsigned i = 0; i < 3; i++)
                start(poll_co, &calls[i]);
        start(cancel_co, &cancelled);
        while (loop.coroutines.busy > 1 && CHECK_INT(loop_turn(&loop), 0))
                continue;
        CHECK_INT(cancelled, 2);
        CHECK_INT(calls[0].result, -ECANCELED);
        CHECK_INT(calls[1].result, -ECANCELED);
        CHECK_INT(calls[2].result, -EINPROGRESS);
        CHECK_INT(write(ends[0], "x", 1), 1);
        end_socket();
        CHECK_INT(calls[2].result, POLLIN);
}

/* ---- time ---- */

static uint64_t ends_at[3];

static void timeout_co(void *argument)
{
        unsigned number = (unsigned)(uintptr_t)argument;

        CHECK_INT(await_timeout(&loop.queue, number * 20 * MS), 0);
        ends_at[number] = clock_nsec(CLOCK_MONOTONIC);
}

static void test_timeout(void)
{
        uint64_t begin = clock_nsec(CLOCK_MONOTONIC);

        desc = (struct target_desc){.name = "test"};
        if (!world_open(NULL, 0) || !world_run())
                return;
        for (uintptr_t i = 0; i < 3; i++)
                start(timeout_co, (void *)i);
        world_close();
        CHECK(ends_at[1] - begin >= 20 * MS && ends_at[2] - begin >= 40 * MS);
}

/* ---- sockets ---- */

enum { LONG = 3 << 20 };
static char sent[LONG], received[LONG];

struct stream_call {
        enum { SEND, RECV, RECV_SOME } kind;
        unsigned file;
        uint32_t length;
        int result;
};

static void stream_co(void *argument)
{
        struct stream_call *call = argument;

        switch (call->kind) {
        case SEND:
                call->result = await_send(&loop.queue, call->file, sent, call->length);
                break;
        case RECV:
                call->result = await_recv(&loop.queue, call->file, received, call->length);
                break;
        case RECV_SOME:
                call->result = await_recv_some(&loop.queue, call->file, received, call->length);
                break;
        }
}

/* Much more than the socket holds, in both kinds of sockets. */
static void test_long_streams(int flags)
{
        struct stream_call send = {.kind = SEND, .file = 0, .length = LONG},
                           recv = {.kind = RECV, .file = 1, .length = LONG};

        for (size_t i = 0; i < LONG; i++)
                sent[i] = (char)(i * 31 >> 3);
        memset(received, 0, sizeof(received));
        if (!begin_socket(TARGET_NEEDS_NETWORK, flags))
                return;
        start(stream_co, &recv);
        start(stream_co, &send);
        end_socket();
        CHECK_INT(send.result, LONG);
        CHECK_INT(recv.result, LONG);
        CHECK(memcmp(sent, received, LONG) == 0);
}

/* Returns what a call gave while the other side wrote `written` bytes and closed. */
static int one_call(struct stream_call call, unsigned needs, uint32_t written)
{
        call.result = -EINPROGRESS;
        if (!begin_socket(needs, 0))
                return -ENOTRECOVERABLE;
        start(stream_co, &call);
        CHECK_INT(write(ends[1], sent, written), written);
        CHECK_INT(shutdown(ends[1], SHUT_RDWR), 0);
        end_socket();
        return call.result;
}

static void test_ends_of_streams(void)
{
        const struct stream_call recv = {.kind = RECV, .length = 100},
                                 some = {.kind = RECV_SOME, .length = 100};
        struct stream_call send = {.kind = SEND, .file = 1, .length = 100, .result = -EINPROGRESS};

        CHECK_INT(one_call(recv, TARGET_NEEDS_NETWORK, 100), 100);
        CHECK_INT(one_call(recv, TARGET_NEEDS_NETWORK, 0), 0);
        CHECK_INT(one_call(recv, TARGET_NEEDS_NETWORK, 99), -ECONNRESET);
        CHECK_INT(one_call(some, TARGET_NEEDS_NETWORK, 7), 7);
        CHECK_INT(one_call(some, TARGET_NEEDS_NETWORK, 0), 0);
        if (begin_socket(TARGET_NEEDS_NETWORK, 0)) { /* without a SIGPIPE, which would end this test */
                CHECK_INT(shutdown(ends[0], SHUT_RDWR), 0);
                start(stream_co, &send);
                end_socket();
                CHECK_INT(send.result, -EPIPE);
        }
}

/* ---- what is not declared ---- */

static int unused_run(void *argument)
{
        (void)argument;
        CHECK(false);
        return 0;
}

static void undeclared_work_co(void *argument)
{
        *(int *)argument = await_work(&loop.queue, unused_run, NULL);
}

static void test_nothing_is_allowed_that_is_not_declared(void)
{
        struct poll_call call = {.file = 0, .events = POLLIN};
        int cancelled = 0, worked = 0;

        CHECK_INT(one_call((struct stream_call){.kind = RECV, .length = 1}, 0, 0), -EACCES);
        CHECK_INT(one_call((struct stream_call){.kind = SEND, .length = 1}, 0, 0), -EACCES);
        CHECK_INT(one_call((struct stream_call){.kind = RECV, .length = 1}, TARGET_NEEDS_POLL, 0), -EACCES);
        if (!begin_socket(0, 0))
                return;
        CHECK(!loop.waits);
        CHECK_INT(wait_room_stacks(&device, 0, DEPTH), 0);
        start(poll_co, &call);
        start(cancel_co, &cancelled);
        start(undeclared_work_co, &worked);
        end_socket();
        CHECK_INT(call.result, -EACCES);
        CHECK_INT(cancelled, -EACCES);
        CHECK_INT(worked, -EACCES);
        worked = 0;
        if (!begin_socket(TARGET_NEEDS_POLL, 0)) /* it reserves something, and no threads */
                return;
        start(undeclared_work_co, &worked);
        end_socket();
        CHECK_INT(worked, -EACCES);
}

/* ---- places of the queue ---- */

struct place_call {
        int fd, set, received;
};

/* Replace a socket that is used, as after a lost connection. */
static void place_co(void *argument)
{
        struct place_call *call = argument;
        char byte;

        CHECK_INT(await_recv(&loop.queue, TARGET_QUEUE_FILE + 1, &byte, 1), -EBADF);
        call->set = target_queue_set_file(&loop.queue, TARGET_QUEUE_FILE + 1, call->fd);
        call->received = await_recv(&loop.queue, TARGET_QUEUE_FILE + 1, &byte, 1);
        CHECK_INT(target_queue_set_file(&loop.queue, TARGET_QUEUE_FILE + 1, -1), call->set);
        CHECK_INT(await_recv(&loop.queue, TARGET_QUEUE_FILE, &byte, 1), 1);
        CHECK_INT(byte, '1');
}

static void test_places(unsigned needs)
{
        struct place_call call = {};
        int first[2], second[2];

        desc = (struct target_desc){
                .name = "test", .needs = needs, .waits = {.files = 2, .work_threads = 1}
        };
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, first), 0);
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, second), 0);
        CHECK_INT(write(first[1], "1", 1), 1);
        CHECK_INT(write(second[1], "2", 1), 1);
        call.fd = second[0];
        if (!world_open(ends, 0))
                return;
        CHECK_INT(
                target_queue_set_file(&loop.queue, TARGET_QUEUE_FILE, first[0]), 0); /* as in start_queue() */
        if (!world_run())
                return;
        start(place_co, &call);
        world_close();
        CHECK_INT(call.set, 0);
        CHECK_INT(call.received, 1);
        for (unsigned i = 0; i < 2; i++) {
                close_fd(first[i]);
                close_fd(second[i]);
        }
}

/* Without the network a table that is in use stays as it is. */
struct refused_call {
        int set, events;
};

static void refused_co(void *argument)
{
        struct refused_call *call = argument;

        call->set = target_queue_set_file(&loop.queue, TARGET_QUEUE_FILE, ends[1]);
        call->events = await_fd(&loop.queue, TARGET_QUEUE_FILE, POLLIN | POLLOUT);
}

static void test_a_place_stays(void)
{
        struct refused_call call = {};

        desc = (struct target_desc){.name = "test", .needs = TARGET_NEEDS_POLL, .waits.files = 1};
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        CHECK_INT(write(ends[0], "x", 1), 1); /* so that only the other one can be read */
        if (!world_open(NULL, 0))
                return;
        CHECK_INT(target_queue_set_file(&loop.queue, TARGET_QUEUE_FILE, ends[0]), 0);
        if (!world_run())
                return;
        start(refused_co, &call);
        world_close();
        CHECK_INT(call.set, -EACCES);
        CHECK_INT(call.events, POLLOUT);
        close_fd(ends[0]);
        close_fd(ends[1]);
}

/* ---- work ---- */

enum { JOBS = DEPTH };

static atomic_uint at_work, most_at_work, begun;
static unsigned order_of_work[JOBS];
static pthread_t queue_thread;
static atomic_bool gate;

struct job {
        unsigned number;
        int result;
};

static int job_run(void *argument)
{
        const struct job *job = argument;
        unsigned now = atomic_fetch_add(&at_work, 1) + 1, most = atomic_load(&most_at_work);

        CHECK(!pthread_equal(pthread_self(), queue_thread));
        while (now > most && !atomic_compare_exchange_weak(&most_at_work, &most, now))
                continue;
        order_of_work[atomic_fetch_add(&begun, 1)] = job->number;
        while (!atomic_load(&gate))
                sched_yield();
        (void)atomic_fetch_sub(&at_work, 1);
        return (int)job->number * 10 - 20;
}

static void job_co(void *argument)
{
        struct job *job = argument;

        job->result = await_work(&loop.queue, job_run, job);
}

static void test_work(unsigned threads)
{
        struct job jobs[JOBS];

        desc = (struct target_desc){.name = "test", .waits.work_threads = threads};
        queue_thread = pthread_self();
        at_work = most_at_work = begun = 0;
        gate = false;
        if (!world_open(NULL, 0) || !world_run())
                return;
        for (unsigned i = 0; i < JOBS; i++) {
                jobs[i] = (struct job){.number = i, .result = -ENOTRECOVERABLE};
                start(job_co, &jobs[i]);
        }
        while (atomic_load(&begun) < threads) /* as many as there are threads */
                sched_yield();
        atomic_store(&gate, true);
        world_close();
        CHECK_INT(most_at_work, threads);
        CHECK_INT(begun, JOBS);
        for (unsigned i = 0; i < JOBS; i++) {
                CHECK_INT(jobs[i].result, (int)i * 10 - 20);
                CHECK(threads > 1 || order_of_work[i] == i);
        }
}

static int refuse(void *argument)
{
        (void)argument;
        return -EPERM;
}

static void test_threads_that_cannot_begin(void)
{
        struct work_pool *none = NULL;

        CHECK_INT(work_pool_new(3, 1, refuse, NULL, &none), -EPERM);
        CHECK(!none);
}

/* Without the news of its threads a queue cannot go on: its owner learns that, in place of requests that
 * never end. */
static void test_threads_whose_news_do_not_come(void)
{
        desc = (struct target_desc){
                .name = "test", .waits = {.files = 1, .work_threads = 1}
        };
        if (!world_open(NULL, 0))
                return;
        loop.waits->work_file = holder == IO_LOOP_HELD_BY_RING ? (int)io_loop_place(&loop, 0) : -1;
        if (!world_run())
                return;
        while (loop.residents > 0 && CHECK_INT(loop_turn(&loop), 0))
                continue;
        CHECK_INT(failure, -EBADF);
        world_close();
}

int main(void)
{
        if (!io_uring_is_there())
                return CHECK_SKIP;
        for (holder = IO_LOOP_HELD_BY_RING; holder <= IO_LOOP_HELD_BY_PROCESS; holder++) {
                test_poll(TARGET_NEEDS_POLL);
                test_poll(TARGET_NEEDS_NETWORK);
                test_cancel();
                test_timeout();
                test_long_streams(0);
                test_long_streams(SOCK_NONBLOCK);
                test_ends_of_streams();
                test_nothing_is_allowed_that_is_not_declared();
                test_places(TARGET_NEEDS_NETWORK);
                test_a_place_stays();
                for (unsigned threads = 1; threads <= 3; threads++)
                        test_work(threads);
                test_threads_whose_news_do_not_come();
        }
        test_threads_that_cannot_begin();
        check_no_allocations();
        return check_report();
}
