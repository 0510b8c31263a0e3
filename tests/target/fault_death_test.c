/* SPDX-License-Identifier: MIT */
/* Deaths that the fault target asks for: at each await of a request, and by the action "powercut", whose end is in the region. */
#include "tests/target/fault_bench.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/proto/region_action.h"

#include "targets/fault/fault_options.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define CACHE "\"volatileCache\":true,"

enum { BLOCK = 512, CACHED = 5, AWAITS_MAX = 50, HANGS_SECONDS = 20, TURNS = 5, ENDED = 0, BROKEN = 1 };

static unsigned write_blocks(struct fault_bench *bench, unsigned count)
{
        memset(target_host_data(&bench->host, 0), 'n', LENGTH);
        return (unsigned)target_host_one(&bench->host, IO_WRITE, 0, 0, count * BLOCK);
}

static unsigned blocks_of(const struct fault_bench *bench, char letter)
{
        _cleanup_close_ int fd = open(bench->path, O_RDONLY | O_CLOEXEC);
        char bytes[LENGTH];
        unsigned count = 0;

        CHECK_INT(pread(fd, bytes, LENGTH, 0), LENGTH);
        for (unsigned i = 0; i < LENGTH; i += BLOCK)
                count += bytes[i] == letter && bytes[i + BLOCK - 1] == letter;
        return count;
}

/* Return how the worker has exited. */
static int in_child(struct fault_bench *bench, int (*work)(struct fault_bench *bench))
{
        int status = 0;
        pid_t child = fork();

        if (child == 0)
                _exit(fault_bench_open(bench) < 0 ? BROKEN : work(bench));
        CHECK_INT(waitpid(child, &status, 0), child);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- at an await ---- */

static int write_and_flush(struct fault_bench *bench)
{
        if (write_blocks(bench, CACHED) != CACHED * BLOCK)
                return BROKEN;
        return target_host_one(&bench->host, IO_FLUSH, 0, 0, 0) < 0 ? BROKEN : ENDED;
}

/* A flush waits for each block that it writes down, and at last for that of the child. */
static void test_each_await(const char *moment, unsigned written_by_first)
{
        unsigned await = 0;
        int end = FAULT_EXIT_STATUS;

        while (end == FAULT_EXIT_STATUS && CHECK(await < AWAITS_MAX)) {
                struct fault_bench bench;
                char rule[160];

                snprintf(rule, sizeof(rule),
                        "{\"action\":\"die\",\"op\":\"flush\",\"times\":1,\"moment\":\"%s\",\"await\":%u}",
                        moment, ++await);
                fault_bench_set_up_with(&bench, CACHE, rule);
                target_host_close(&bench.host);
                end = in_child(&bench, write_and_flush);
                if (end == FAULT_EXIT_STATUS && await <= CACHED)
                        CHECK_INT(blocks_of(&bench, 'n'), await - 1 + written_by_first);
                CHECK_INT(fault_bench_counts(&bench).tallies[0].fired, 1);
                CHECK_INT(fault_bench_open(&bench), 0); /* the next worker loses nothing, and is not killed */
                CHECK_INT(target_host_one(&bench.host, IO_FLUSH, 0, 0, 0), 0);
                CHECK_INT(blocks_of(&bench, 'n'), CACHED);
                fault_bench_tear_down(&bench);
        }
        CHECK_INT(end, ENDED);
        CHECK_INT(await, CACHED + 2); /* the last one is not reached */
}

static int write_one(struct fault_bench *bench)
{
        return write_blocks(bench, 1) == BLOCK ? ENDED : BROKEN;
}

/* Without a cache a write waits for loop, once. */
static void test_the_only_await(void)
{
        static const struct {
                const char *moment;
                unsigned await, written;
                int end;
        } cases[] = {
                {"suspended", 1, 0, FAULT_EXIT_STATUS},
                {"resumed",   1, 1, FAULT_EXIT_STATUS},
                {"suspended", 2, 1, ENDED            },
                {"resumed",   2, 1, ENDED            },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct fault_bench bench;
                char rule[160];

                snprintf(rule, sizeof(rule), "{\"action\":\"die\",\"moment\":\"%s\",\"await\":%u}",
                        cases[i].moment, cases[i].await);
                fault_bench_set_up(&bench, rule);
                target_host_close(&bench.host);
                CHECK_INT(in_child(&bench, write_one), cases[i].end);
                CHECK_INT(blocks_of(&bench, 'n'), cases[i].written);
                fault_bench_tear_down(&bench);
        }
}

/* Many at a time: each has a stack in its turn, and all are answered. */
static void test_many_at_a_time(void)
{
        struct host_request requests[HOST_DEPTH];
        struct fault_bench bench;

        fault_bench_set_up(&bench, "{\"action\":\"die\",\"moment\":\"suspended\",\"await\":9}");
        for (unsigned i = 0; i < HOST_DEPTH; i++)
                requests[i] = (struct host_request){.op = IO_WRITE, .offset = i * BLOCK, .length = BLOCK};
        CHECK_INT(target_host_perform(&bench.host, requests, HOST_DEPTH), 0);
        for (unsigned i = 0; i < HOST_DEPTH; i++)
                CHECK_INT(requests[i].result, BLOCK);
        fault_bench_tear_down(&bench);
}

static int write_all_parts(struct fault_bench *bench)
{
        alarm(HANGS_SECONDS);
        return target_host_one(&bench->host, IO_WRITE, 0, 0, FILE_SIZE) == FILE_SIZE ? ENDED : BROKEN;
}

/* The parts of the target above may have all stacks of the queue, and wait for one that watches. */
static void test_below_a_stripe(void)
{
        struct fault_bench bench = {.depth = 1};
        char other[300];
        uint64_t size;

        CHECK_INT(scratch_make(&bench.scratch, "/tmp"), 0);
        CHECK_INT(scratch_file(&bench.scratch, "file", FILE_SIZE, bench.path, sizeof(bench.path)), 0);
        CHECK_INT(scratch_file(&bench.scratch, "other", FILE_SIZE, other, sizeof(other)), 0);
        snprintf(bench.spec, sizeof(bench.spec),
                "{\"target\":{\"type\":\"stripe\",\"chunk\":4096,\"children\":["
                "{\"type\":\"fault\",\"rules\":[{\"action\":\"die\",\"moment\":\"suspended\",\"await\":9}],"
                "\"child\":{\"type\":\"loop\",\"path\":\"%s\"}},{\"type\":\"loop\",\"path\":\"%s\"}]}}",
                bench.path, other);
        CHECK_INT(target_host_new_region(bench.spec, 1, &bench.region, &size), 0);
        CHECK_INT(in_child(&bench, write_all_parts), ENDED);
        scratch_remove(&bench.scratch);
        close(bench.region);
}

/* ---- powercut ---- */

static const struct region_action *action_of(const struct fault_bench *bench)
{
        return &device_region_control(bench->host.shared.region)->action;
}

static int64_t seed;

static int write_and_cut(struct fault_bench *bench)
{
        const struct fault_powercut_arguments arguments = {.seed = seed};

        if (write_blocks(bench, LENGTH / BLOCK) != LENGTH)
                return BROKEN;
        (void)target_host_act(&bench->host, 5, FAULT_VERB_POWERCUT, &arguments, sizeof(arguments));
        return ENDED;
}

/* Its end, its seed and what was lost are there before the worker is gone. */
static uint32_t test_powercut(int64_t with, unsigned *ret_left)
{
        const struct region_action *action;
        struct fault_bench bench;
        uint32_t used;

        fault_bench_set_up_with(&bench, CACHE, "");
        target_host_close(&bench.host);
        seed = with;
        CHECK_INT(in_child(&bench, write_and_cut), FAULT_EXIT_STATUS);
        CHECK_INT(fault_bench_open(&bench), 0);
        action = action_of(&bench);
        used = action->number;
        *ret_left = blocks_of(&bench, 'n');
        CHECK(action->id == 5 && action->state == REGION_ACTION_DONE);
        CHECK(action->done == LENGTH && action->total == LENGTH);
        CHECK(*ret_left > 0 && *ret_left < LENGTH / BLOCK);
        CHECK_INT(action->found_bytes, LENGTH - *ret_left * BLOCK);
        CHECK(used > 0 && (with == 0 || used == with));
        CHECK_INT(target_host_one(&bench.host, IO_FLUSH, 0, 0, 0), 0);
        CHECK_INT(blocks_of(&bench, 'n'), *ret_left); /* nothing of it comes later */
        fault_bench_tear_down(&bench);
        return used;
}

static void test_its_seed(void)
{
        unsigned first, again;
        uint32_t used = test_powercut(0, &first);

        CHECK_INT(test_powercut(used, &again), used);
        CHECK_INT(again, first);
        CHECK_INT(test_powercut(7, &again), 7);
}

/* ---- of blocks with several versions ---- */

static int write_twice_and_cut(struct fault_bench *bench)
{
        const struct fault_powercut_arguments arguments = {.seed = seed};

        memset(target_host_data(&bench->host, 0), 'o', LENGTH);
        if (target_host_one(&bench->host, IO_WRITE, 0, 0, LENGTH) != LENGTH)
                return BROKEN;
        if (write_blocks(bench, LENGTH / BLOCK) != LENGTH)
                return BROKEN;
        (void)target_host_act(&bench->host, 5, FAULT_VERB_POWERCUT, &arguments, sizeof(arguments));
        return ENDED;
}

/* A block is lost if its newest version is, whatever has become of the older one; and each is lost once. */
static void test_versions(void)
{
        for (seed = 1; seed <= 4; seed++) {
                const struct region_action *action;
                struct fault_bench bench;
                unsigned left, older;

                fault_bench_set_up_with(&bench, CACHE, "");
                target_host_close(&bench.host);
                CHECK_INT(in_child(&bench, write_twice_and_cut), FAULT_EXIT_STATUS);
                CHECK_INT(fault_bench_open(&bench), 0);
                action = action_of(&bench);
                left = blocks_of(&bench, 'n');
                older = blocks_of(&bench, 'o');
                CHECK(left > 0 && older > 0 && left + older < LENGTH / BLOCK);
                CHECK_INT(action->found_bytes, LENGTH - left * BLOCK);
                CHECK_INT(action->done - action->found_bytes, left * BLOCK); /* bytesWritten of the result */
                CHECK(action->done == action->total);
                fault_bench_tear_down(&bench);
        }
}

/* ---- a child that fails ---- */

/* The second half of the file cannot be written. */
static int cut_over_a_limit(struct fault_bench *bench)
{
        const struct rlimit half = {LENGTH / 2, LENGTH / 2};

        if (signal(SIGXFSZ, SIG_IGN) == SIG_ERR || setrlimit(RLIMIT_FSIZE, &half) < 0)
                return BROKEN;
        return write_and_cut(bench);
}

/* Clients see a death where the disk has lost something, also if the cut is not finished. */
static void test_a_cut_that_fails(void)
{
        const struct region_action *action;
        struct fault_bench bench;
        unsigned left;

        fault_bench_set_up_with(&bench, CACHE, "");
        target_host_close(&bench.host);
        seed = 7;
        CHECK_INT(in_child(&bench, cut_over_a_limit), FAULT_EXIT_STATUS);
        CHECK_INT(fault_bench_open(&bench), 0);
        action = action_of(&bench);
        CHECK(action->id == 5 && action->state == REGION_ACTION_FAILED && action->number == 7);
        CHECK_INT(action->error, EFBIG);
        CHECK_INT(target_host_one(&bench.host, IO_FLUSH, 0, 0, 0), 0); /* the next worker finishes it */
        left = blocks_of(&bench, 'n');
        CHECK(left > 0 && left < LENGTH / BLOCK);
        fault_bench_tear_down(&bench);
}

/* ---- one that is cancelled ---- */

static bool flushed;

static void flush_co(void *argument)
{
        struct fault_bench *bench = argument;
        struct target_queue *queue = &bench->host.loop.queue;
        struct target_io io = {.queue = queue, .op = IO_FLUSH};

        (void)queue->device->target->flush(&io);
        flushed = true;
}

/* A flush holds the cache while the action waits for it. */
static int cancel_while_it_waits(struct fault_bench *bench)
{
        struct region_action *action = &device_region_control(bench->host.shared.region)->action;
        const struct action_order order = {.id = 5, .worker = 1, .verb = FAULT_VERB_POWERCUT};
        struct io_loop *loop = &bench->host.loop;

        if (write_blocks(bench, LENGTH / BLOCK) != LENGTH || co_start(&loop->coroutines, flush_co, bench) < 0
                || action_port_give(bench->host.actions, &order) < 0)
                return BROKEN;
        for (unsigned i = 0; i < TURNS; i++)
                if (loop_turn(loop) < 0)
                        return BROKEN;
        if (flushed || action->id != order.id)
                return BROKEN;
        action->cancel = order.id;
        while (action_port_is_busy(bench->host.actions) || !flushed)
                if (loop_turn(loop) < 0)
                        return BROKEN;
        return ENDED;
}

static void test_a_cut_that_is_cancelled(void)
{
        struct fault_bench bench;

        fault_bench_set_up_with(&bench, CACHE, "");
        target_host_close(&bench.host);
        CHECK_INT(in_child(&bench, cancel_while_it_waits), ENDED);
        CHECK_INT(fault_bench_open(&bench), 0);
        CHECK_INT(action_of(&bench)->state, REGION_ACTION_CANCELLED);
        CHECK_INT(action_of(&bench)->number, 0);
        CHECK_INT(fault_bench_counts(&bench).cuts, 0);
        CHECK_INT(blocks_of(&bench, 'n'), LENGTH / BLOCK);
        fault_bench_tear_down(&bench);
}

/* The worker was started with other options than the client now sees. */
static void test_without_a_cache(void)
{
        const struct fault_powercut_arguments arguments = {};
        struct fault_bench bench;

        fault_bench_set_up(&bench, "");
        CHECK_INT(target_host_act(&bench.host, 5, FAULT_VERB_POWERCUT, &arguments, sizeof(arguments)), 0);
        CHECK_INT(action_of(&bench)->state, REGION_ACTION_FAILED);
        CHECK_INT(action_of(&bench)->error, EOPNOTSUPP);
        fault_bench_tear_down(&bench);
}

int main(void)
{
        if (!io_uring_is_there())
                return CHECK_SKIP;
        setvbuf(stdout, NULL, _IOLBF, 0); /* a fork copies no output */
        test_each_await("suspended", 0);
        test_each_await("resumed", 1);
        test_the_only_await();
        test_many_at_a_time();
        test_below_a_stripe();
        test_its_seed();
        test_versions();
        test_a_cut_that_fails();
        test_a_cut_that_is_cancelled();
        test_without_a_cache();
        return check_report();
}
