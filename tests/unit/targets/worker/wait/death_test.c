/* SPDX-License-Identifier: MIT */
/* A process that dies in the middle of a wait: everything that its ring and its threads held is free soon,
 * and the next one waits in the same way, and gets what comes. */
#include "tests/unit/targets/worker/wait/wait_world.h"
#include "ublkd/base/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

enum { FILE_SOCKET, FILE_HELD, LONG = 4 << 20, PATIENCE = 60000 /* milliseconds */ };

#define HOUR UINT64_C(3600000000000)
#define SOON UINT64_C(1000000)

static bool dies; /* this process waits for what does not come */
static struct co_mutex mutex;
static struct co_rwlock rwlock, read_lock;
static struct co_range_lock ranges;
static struct co_condition condition, never;
static char memory[LONG];

static uint64_t how_long(void)
{
        return dies ? HOUR : SOON;
}

static int wait_mutex(void)
{
        await_mutex(&loop.queue, &mutex);
        co_mutex_unlock(&mutex);
        return 0;
}

static int wait_rwlock(void)
{
        await_rwlock_write(&loop.queue, &rwlock);
        co_rwlock_unlock_write(&rwlock);
        return 0;
}

static int wait_to_read(void)
{
        await_rwlock_read(&loop.queue, &read_lock);
        co_rwlock_unlock_read(&read_lock);
        return 0;
}

static int wait_range(void)
{
        struct co_range range;

        await_range(&loop.queue, &ranges, &range, 50, 100, CO_RANGE_EXCLUSIVE);
        co_range_unlock(&ranges, &range);
        return 0;
}

static int wait_condition(void)
{
        return await_condition(&loop.queue, dies ? &never : &condition, NULL);
}

static int wait_timeout(void)
{
        return await_timeout(&loop.queue, how_long());
}

static int child_run(void *argument)
{
        (void)argument;
        return wait_timeout();
}

static int wait_all(void)
{
        struct target_child children[3] = {{.run = child_run}, {.run = child_run}, {.run = child_run}};

        return await_all(&loop.queue, children, 3);
}

static int wait_fd(void)
{
        int r = await_fd(&loop.queue, FILE_SOCKET, POLLIN);

        return r == POLLIN ? 0 : r;
}

static int wait_recv(void)
{
        int r = await_recv(&loop.queue, FILE_SOCKET, memory, 1);

        return r == 1 ? 0 : r;
}

static int wait_recv_some(void)
{
        int r = await_recv_some(&loop.queue, FILE_SOCKET, memory, 2);

        return r == 1 ? 0 : r;
}

static int wait_send(void)
{
        uint32_t length = dies ? LONG : 1;
        int r = await_send(&loop.queue, FILE_SOCKET, memory, length);

        return r == (int)length ? 0 : r;
}

static int sleep_run(void *argument)
{
        const struct timespec time = {
                .tv_sec = (time_t)(how_long() / 1000000000), .tv_nsec = (long)(how_long() % 1000000000)};

        (void)argument;
        return clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static int wait_work(void)
{
        return await_work(&loop.queue, sleep_run, NULL);
}

static int (*const waits[])(void) = {wait_mutex, wait_rwlock, wait_to_read, wait_range, wait_condition,
        wait_timeout, wait_all, wait_fd, wait_recv, wait_recv_some, wait_send, wait_work};

/* Hold all locks, and wake what waits for the condition. */
static void holder_co(void *argument)
{
        struct co_range range;

        (void)argument;
        await_mutex(&loop.queue, &mutex);
        await_rwlock_read(&loop.queue, &rwlock);
        await_rwlock_write(&loop.queue, &read_lock);
        await_range(&loop.queue, &ranges, &range, 0, 100, CO_RANGE_SHARED);
        CHECK_INT(await_timeout(&loop.queue, how_long()), 0);
        co_range_unlock(&ranges, &range);
        co_rwlock_unlock_write(&read_lock);
        co_rwlock_unlock_read(&rwlock);
        co_mutex_unlock(&mutex);
        co_condition_broadcast(&condition);
}

static int results[2];

static void wait_co(void *argument)
{
        int (*wait)(void) = waits[(uintptr_t)argument];

        results[0] = wait();
}

/* Of work, the second waits in the line. */
static void second_co(void *argument)
{
        int (*wait)(void) = waits[(uintptr_t)argument];

        results[1] = wait == wait_work ? wait() : 0;
}

static bool begin(size_t way, int socket, int held)
{
        const int files[] = {[FILE_SOCKET] = socket, [FILE_HELD] = held};

        desc = (struct target_desc){
                .name = "test", .needs = TARGET_NEEDS_NETWORK, .waits = {.children = 2, .work_threads = 1}
        };
        mutex = (struct co_mutex){};
        rwlock = read_lock = (struct co_rwlock){};
        ranges = (struct co_range_lock){};
        condition = never = (struct co_condition){};
        results[0] = results[1] = -EINPROGRESS;
        if (!world_open(files, 2) || !world_run())
                return false;
        start(holder_co, NULL);
        start(wait_co, (void *)way);
        start(second_co, (void *)way);
        return true;
}

/* The process that dies. ready: gets a byte once everything waits. */
static void child(size_t way, int socket, int held, int ready)
{
        dies = true;
        if (!begin(way, socket, held))
                _exit(EXIT_FAILURE);
        io_loop_run_ready(&loop);
        CHECK_INT(io_loop_submit(&loop, false), 0);
        if (results[0] != -EINPROGRESS || write(ready, "x", 1) != 1)
                _exit(EXIT_FAILURE);
        (void)loop_drive(&loop); /* for an hour */
        _exit(EXIT_FAILURE);
}

/* Return whether it waited. In any case it has ended. */
static bool kill_once_it_waits(pid_t pid, int ready)
{
        char byte;
        bool waited = CHECK_INT(read(ready, &byte, 1), 1);
        int status = 0;

        CHECK_INT(kill(pid, SIGKILL), 0); /* also one that has exited: it is not reaped yet */
        return CHECK_INT(waitpid(pid, &status, 0), pid) && waited
               && CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void test_death(size_t way)
{
        int sockets[2], held[2], ready[2];
        struct pollfd end;
        char byte;
        pid_t pid;

        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
        CHECK_INT(pipe2(held, O_CLOEXEC), 0);
        CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
        pid = fork();
        if (pid == 0)
                child(way, sockets[0], held[1], ready[1]);
        ready[1] = close_fd(ready[1]);
        held[1] = close_fd(held[1]);
        if (!CHECK(pid > 0) || !kill_once_it_waits(pid, ready[0]))
                return;
        /* What a ring and threads held, as /dev/ublkcN is held: the pipe ends when all of them have released
         * it. */
        end = (struct pollfd){.fd = held[0], .events = POLLIN};
        CHECK_INT(poll(&end, 1, PATIENCE), 1);
        CHECK_INT(read(held[0], &byte, 1), 0);
        /* The next one. What the first had sent is read by its peer. */
        while (recv(sockets[1], memory, LONG, MSG_DONTWAIT) > 0)
                continue;
        CHECK_INT(write(sockets[1], "x", 1), 1);
        dies = false;
        if (begin(way, sockets[0], held[0])) {
                world_close();
                CHECK_INT(results[0], 0);
                CHECK_INT(results[1], 0);
        }
        for (unsigned i = 0; i < 2; i++) {
                close_fd(sockets[i]);
                close_fd(held[i]);
                close_fd(ready[i]);
        }
}

int main(void)
{
        if (!io_uring_is_there())
                return CHECK_SKIP;
        for (holder = IO_LOOP_HELD_BY_RING; holder <= IO_LOOP_HELD_BY_PROCESS; holder++)
                for (size_t way = 0; way < ARRAY_SIZE(waits); way++)
                        test_death(way);
        return check_report();
}
