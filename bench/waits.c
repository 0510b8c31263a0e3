/* SPDX-License-Identifier: MIT */
/* Waits COUNT times in the way that is asked for: waits WAY COUNT. Prints wall-clock ns for each. bench/waits
 * says what the ways are. */
#include "targets/worker/io/await.h"
#include "targets/worker/wait/wait_room.h"
#include "tests/unit/loop_driver.h"
#include "ublkd/base/clock.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
        DEPTH = 128,
        FILE_READS = 0,
        FILE_WRITES = 1,
        FILE_READY = 2,
        FILE_MEMORY = 3,
        MESSAGE = 64,
        BLOCK = 4096
};

static struct target_desc desc = {
        .name = "bench", .needs = TARGET_NEEDS_NETWORK, .waits = {.children = 3, .work_threads = 1}
};
static void background(struct target_queue *queue, unsigned number);
static struct target target = {.desc = &desc, .background = background};
static struct target_device device;
static struct io_loop loop;
static unsigned long count;

static struct co_mutex mutex;
static struct co_rwlock rwlock;
static struct co_range_lock ranges;
static struct co_condition conditions[2];

static void yield_co(void)
{
        struct co *co = co_current(&loop.coroutines);

        co_list_append(&loop.ready, co);
        co_suspend(co);
}

static int nothing_run(void *argument)
{
        (void)argument;
        return 0;
}

static int yield_run(void *argument)
{
        (void)argument;
        yield_co();
        return 0;
}

static void switch_co(void)
{
        yield_co();
}

static void mutex_co(void)
{
        await_mutex(&loop.queue, &mutex);
        co_mutex_unlock(&mutex);
}

/* Two coroutines do so: each time the other one waits. */
static void mutex_waits_co(void)
{
        await_mutex(&loop.queue, &mutex);
        yield_co();
        co_mutex_unlock(&mutex);
}

static void rwlock_co(void)
{
        await_rwlock_read(&loop.queue, &rwlock);
        co_rwlock_unlock_read(&rwlock);
}

static void rwlock_write_co(void)
{
        await_rwlock_write(&loop.queue, &rwlock);
        co_rwlock_unlock_write(&rwlock);
}

static void range_co(void)
{
        struct co_range range;

        await_range(&loop.queue, &ranges, &range, 0, 4096, CO_RANGE_EXCLUSIVE);
        co_range_unlock(&ranges, &range);
}

/* Beside as many others as a queue can have. */
static struct co_range others[DEPTH - 1];

static void hold_others_co(void)
{
        for (unsigned i = 0; i < DEPTH - 1; i++)
                await_range(
                        &loop.queue, &ranges, &others[i], (i + 1) * UINT64_C(4096), 4096, CO_RANGE_EXCLUSIVE);
}

/* Two coroutines wake each other. */
static void condition_co(unsigned who)
{
        co_condition_signal(&conditions[!who]);
        (void)await_condition(&loop.queue, &conditions[who], NULL);
}

static void all_co(unsigned children, int (*run)(void *argument))
{
        struct target_child each[4];

        for (unsigned i = 0; i < children; i++)
                each[i] = (struct target_child){.run = run};
        (void)await_all(&loop.queue, each, children);
}

static void all_1_co(void)
{
        all_co(1, nothing_run);
}

static void all_4_co(void)
{
        all_co(4, nothing_run);
}

static void all_4_wait_co(void)
{
        all_co(4, yield_run);
}

static void check(int result, int wanted)
{
        if (result != wanted) {
                fprintf(stderr, "waits: got %d, wanted %d\n", result, wanted);
                exit(EXIT_FAILURE);
        }
}

static void timeout_co(void)
{
        check(await_timeout(&loop.queue, 0), 0);
}

static void fd_co(void)
{
        check(await_fd(&loop.queue, FILE_READY, POLLOUT), POLLOUT);
}

static void stream_co(void)
{
        char message[MESSAGE] = "";

        check(await_send(&loop.queue, FILE_WRITES, message, MESSAGE), MESSAGE);
        check(await_recv(&loop.queue, FILE_READS, message, MESSAGE), MESSAGE);
}

/* As await_read() does it. */
static void read_co(void)
{
        static char block[BLOCK];
        struct transfer read = {.file = IO_LOOP_FIRST_FILE + FILE_MEMORY,
                .length = BLOCK,
                .address = (uint64_t)(uintptr_t)block};

        check(await_transfer(&loop, &read), BLOCK);
}

static void work_co(void)
{
        check(await_work(&loop.queue, nothing_run, NULL), 0);
}

/* In the background, until it is asked to stop. */
static void background(struct target_queue *queue, unsigned number)
{
        (void)number;
        while (!target_queue_stopping(queue))
                (void)await_condition(queue, &conditions[0], NULL);
}

static const struct way {
        const char *name;
        void (*wait)(void);
        void (*begin)(void);
        bool twice;      /* on two coroutines, COUNT times in all */
        bool background; /* none of them: what is counted is to stop the background, and to begin it again */
} ways[] = {
        {"switch",       switch_co,       NULL,           false, false},
        {"mutex",        mutex_co,        NULL,           false, false},
        {"mutex-waits",  mutex_waits_co,  NULL,           true,  false},
        {"rwlock",       rwlock_co,       NULL,           false, false},
        {"rwlock-write", rwlock_write_co, NULL,           false, false},
        {"range",        range_co,        NULL,           false, false},
        {"range-127",    range_co,        hold_others_co, false, false},
        {"condition",    NULL,            NULL,           true,  false},
        {"all-1",        all_1_co,        NULL,           false, false},
        {"all-4",        all_4_co,        NULL,           false, false},
        {"all-4-wait",   all_4_wait_co,   NULL,           false, false},
        {"timeout",      timeout_co,      NULL,           false, false},
        {"fd",           fd_co,           NULL,           false, false},
        {"send-recv",    stream_co,       NULL,           false, false},
        {"work",         work_co,         NULL,           false, false},
        {"read",         read_co,         NULL,           false, false},
        {"background",   NULL,            NULL,           false, true },
};
static const struct way *way;

static void way_co(void *argument)
{
        unsigned who = (unsigned)(uintptr_t)argument;

        if (way->begin)
                way->begin();
        for (unsigned long i = 0; i < (way->twice ? count / 2 : count); i++)
                if (way->wait)
                        way->wait();
                else
                        condition_co(who);
        co_condition_broadcast(&conditions[!who]);
}

static int turn(struct io_loop *self, bool wait)
{
        return wait ? loop_turn(self) : io_loop_submit(self, false);
}

static void run_coroutines(void)
{
        for (uintptr_t i = 0; i <= way->twice; i++)
                check(co_start(&loop.coroutines, way_co, (void *)i), 0);
        check(loop_drive(&loop), 0);
}

static void run_background(void)
{
        for (unsigned long i = 0; i < count; i++) {
                check(wait_room_stop(&loop, turn), 0);
                check(wait_room_run(&loop), 0);
        }
}

int main(int argc, char **argv)
{
        struct work_pool *pool;
        int ends[2], memory, failure = 0;
        uint64_t begin;

        for (size_t i = 0; argc == 3 && i < sizeof(ways) / sizeof(ways[0]); i++)
                if (strcmp(ways[i].name, argv[1]) == 0)
                        way = &ways[i];
        count = way ? strtoul(argv[2], NULL, 10) : 0;
        memory = memfd_create("bench", MFD_CLOEXEC);
        if (count == 0 || memory < 0 || ftruncate(memory, BLOCK) < 0
                || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
                return EXIT_FAILURE;
        if (way->background)
                desc.waits = (struct target_waits){.background = 1};
        device = (struct target_device){
                .target = &target,
                .files = {ends[0], ends[1], ends[1], memory},
                .file_count = 4,
                .queue_depth = DEPTH
        };
        check(work_pool_new(1, 1, NULL, NULL, &pool), 0);
        check(io_loop_init(&loop, &device, 0, DEPTH, DEPTH + wait_room_stacks(&device, 0, DEPTH), -1,
                      IO_LOOP_HELD_BY_RING),
                0);
        check(wait_room_open(&loop, DEPTH, pool, &failure), 0);
        check(io_loop_start(&loop), 0);
        check(wait_room_run(&loop), 0);
        begin = clock_nsec(CLOCK_MONOTONIC);
        if (way->background)
                run_background();
        else
                run_coroutines();
        printf("%.1f\n", (double)(clock_nsec(CLOCK_MONOTONIC) - begin) / (double)count);
        check(wait_room_stop(&loop, turn), 0);
        return EXIT_SUCCESS; /* what is left ends with the process */
}
