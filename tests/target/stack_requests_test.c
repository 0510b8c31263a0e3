/* SPDX-License-Identifier: MIT */
/* Which children a request of a tree of targets reaches, and what is answered when some of them fail. */
#include "tests/target/target_host.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"
#include "targets/target_wait.h"
#include "targets/worker/queue/perform.h"
#include "targets/worker/wait/wait_room.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

enum { FILE_SIZE = 1 << 20, CALLS_MAX = 1024, CHILDREN = 3 };

static struct {
        const struct target_device *device;
        enum io_op op;
        uint64_t offset;
        uint32_t length;
} calls[CALLS_MAX];
static unsigned call_count;
static enum io_op failing_op;
static const struct target_device *failing; /* NULL: none */
static int errors[CHILDREN];                /* of each child, for all that it is asked for; 0: none */

/* The number of a child in its list. */
static unsigned number_of(const struct target_io *io)
{
        const struct target_queue *const *queues = io->queue->of_disk->state; /* of struct stack_queue */

        return (unsigned)(io->queue - &queues[0][1]);
}

static bool slow;              /* each child waits, and others run meanwhile */
static unsigned running, most; /* children at one time */
static void (*on_begin)(const struct target_io *io);

static int record(struct target_io *io);

static int record_slowly(struct target_io *io)
{
        int r;

        running++;
        most = running > most ? running : most;
        if (on_begin)
                on_begin(io);
        if (slow)
                CHECK_INT(await_timeout(io->queue, 10000000 * (CHILDREN - number_of(io))),
                        0); /* the last ends first */
        r = record(io);
        running--;
        return r;
}

static int record(struct target_io *io)
{
        if (CHECK(call_count < CALLS_MAX)) {
                calls[call_count].device = io->queue->device;
                calls[call_count].op = io->op;
                calls[call_count].offset = io->offset;
                calls[call_count++].length = io->length;
        }
        if (failing == io->queue->device && failing_op == io->op)
                return -ENOLINK;
        if (errors[number_of(io)] < 0)
                return errors[number_of(io)];
        return io->op == IO_READ || io->op == IO_WRITE ? (int)io->length : 0;
}

static uint64_t opened_offset, opened_size; /* bytes; what a recorder was asked for */

static int open_recorder(
        struct target_device *device, struct target_geometry *ret, struct problem_list *problems)
{
        (void)problems;
        opened_offset = device->wanted_offset;
        opened_size = device->wanted_size;
        *ret = (struct target_geometry){.size = FILE_SIZE,
                .volatile_cache = true,
                .max_discard_size = 1 << 20,
                .max_write_zeroes_size = 1 << 20};
        return 0;
}

static struct target recorder = {
        .open = open_recorder,
        .read = record_slowly,
        .write = record_slowly,
        .flush = record_slowly,
        .discard = record_slowly,
        .write_zeroes = record_slowly,
};

/* What the outer part leaves out counts for the length of the inner one: what the store is asked to claim ends with that. */
static void test_a_part_of_a_part_with_a_length_wants_no_more(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct target_host host;
        struct disk second;

        if (CHECK_INT(
                    target_host_open(&host,
                            "{\"target\":{\"type\":\"linear\",\"offset\":4096,\"child\":{\"type\":\"linear\","
                            "\"offset\":8192,\"length\":65536,\"child\":{\"type\":\"null\"}}}}",
                            &problems),
                    0)) {
                recorder.desc = host.config.stack->targets[2]->desc;
                host.config.stack->targets[2] = &recorder;
                if (CHECK_INT(disk_open(&host.config, -1, &second, &problems), 0)) {
                        CHECK_INT(opened_offset, 4096 + 8192);
                        CHECK_INT(opened_size, 65536 - 4096);
                        disk_close(&second);
                }
        }
        target_host_close(&host);
}

#define LEAF "{\"type\":\"loop\",\"path\":\"/not-opened\"}"

/* A stripe of three in chunks of 4096 bytes, over targets that note what they are asked for. reserved: coroutines for each request;
 * -1: as many as the tree wants. */
static bool open_recorders_with(struct target_host *host, int reserved)
{
        static const char tree[] = "{\"target\":{\"type\":\"stripe\",\"chunk\":4096,\"children\":[" LEAF
                                   "," LEAF "," LEAF "]},\"blockSize\":512}";
        _cleanup_problems_ struct problem_list problems = {};

        if (!CHECK_INT(target_host_configure(host, tree, 1, &problems), 0))
                return false;
        recorder.desc = host->config.stack->targets[1]->desc;
        for (unsigned i = 1; i <= 3; i++)
                host->config.stack->targets[i] = &recorder;
        host->config.stack->stores_anywhere = true;
        if (reserved >= 0)
                host->config.stack->desc.waits.children = (unsigned)reserved;
        else
                CHECK_INT(host->config.stack->desc.waits.children, CHILDREN - 1);
        return CHECK_INT(target_host_start(host, &problems), 0);
}

static bool open_recorders(struct target_host *host)
{
        return open_recorders_with(host, -1);
}

static const struct target_device *recorder_of(const struct target_host *host, unsigned number)
{
        const struct target_queue *const *queues =
                host->loop.queue.state; /* struct stack_queue begins with its queues */

        return queues[0][1 + number].device;
}

static void clear_calls(void)
{
        call_count = running = most = 0;
        slow = false;
        on_begin = NULL;
        failing = NULL;
        memset(errors, 0, sizeof(errors));
}

static unsigned calls_of(const struct target_device *device, enum io_op op)
{
        unsigned count = 0;

        for (unsigned i = 0; i < call_count; i++)
                count += calls[i].device == device && calls[i].op == op;
        return count;
}

static void test_a_discard_reaches_each_child_once(void)
{
        struct target_host host;

        if (!CHECK(open_recorders(&host)))
                return;
        clear_calls();
        CHECK_INT(target_host_one(&host, IO_DISCARD, 0, 4096, 9 * 4096), 0);
        CHECK_INT(call_count, 3);
        for (unsigned i = 0; i < 3; i++) {
                CHECK_INT(calls_of(recorder_of(&host, i), IO_DISCARD), 1);
                CHECK_INT(calls[i].length, 3 * 4096);
        }
        target_host_close(&host);
}

/* A child that fails does not keep the others from the request, and its error is the answer. */
static void test_the_error_of_each_child_counts(void)
{
        static const struct {
                enum io_op op;
                uint32_t length;
        } requests[] = {
                {IO_FLUSH,        0       },
                {IO_READ,         3 * 4096},
                {IO_WRITE,        3 * 4096},
                {IO_DISCARD,      3 * 4096},
                {IO_WRITE_ZEROES, 3 * 4096}
        };

        for (size_t k = 0; k < ARRAY_SIZE(requests); k++)
                for (unsigned bad = 0; bad < 3; bad++) {
                        struct target_host host;

                        if (!CHECK(open_recorders(&host)))
                                return;
                        clear_calls();
                        failing = recorder_of(&host, bad);
                        failing_op = requests[k].op;
                        CHECK_INT(target_host_one(&host, requests[k].op, 0, 0, requests[k].length), -ENOLINK);
                        for (unsigned i = 0; i < 3; i++)
                                CHECK_INT(calls_of(recorder_of(&host, i), requests[k].op), 1);
                        target_host_close(&host);
                }
}

/* With FUA the core flushes after the request, of all children. */
static void test_a_discard_with_fua_is_flushed(void)
{
        struct target_host host;

        if (!CHECK(open_recorders(&host)))
                return;
        clear_calls();
        CHECK_INT(target_host_one(&host, IO_DISCARD, IO_FUA, 0, 4096), 0);
        CHECK_INT(calls_of(recorder_of(&host, 0), IO_DISCARD), 1);
        for (unsigned i = 0; i < 3; i++)
                CHECK_INT(calls_of(recorder_of(&host, i), IO_FLUSH), 1);
        CHECK_INT(call_count, 4);
        target_host_close(&host);
}

/* The core marks the disk after it, so that no later flush succeeds. */
static void check_answer_of_errors(
        enum io_op op, unsigned flags, const int given[CHILDREN], int answer, bool lost)
{
        struct target_host host;

        if (!CHECK(open_recorders(&host)))
                return;
        clear_calls();
        memcpy(errors, given, sizeof(errors));
        CHECK_INT(target_host_one(&host, op, flags, 0, op == IO_FLUSH ? 0 : CHILDREN * 4096), answer);
        CHECK_INT(call_count, CHILDREN);
        CHECK_INT(durability_is_lost(&host.durability), lost);
        target_host_close(&host);
}

static void test_an_error_that_loses_data_is_the_answer(void)
{
        static const struct {
                enum io_op op;
                unsigned flags;
                int errors[CHILDREN], answer;
                bool lost;
        } cases[] = {
                {IO_FLUSH, 0,      {-EAGAIN, 0, -EIO},         -EIO,       true },
                {IO_FLUSH, 0,      {-EINTR, -EREMOTEIO, -EIO}, -EREMOTEIO, true },
                {IO_FLUSH, 0,      {-EIO, -EAGAIN, 0},         -EIO,       true },
                {IO_FLUSH, 0,      {0, -EAGAIN, -EINTR},       -EAGAIN,    false},
                {IO_WRITE, IO_FUA, {-ENOSPC, -EIO, 0},         -EIO,       true },
                {IO_WRITE, IO_FUA, {0, -EDQUOT, -ENOSPC},      -EDQUOT,    false},
                {IO_WRITE, 0,      {-ENOSPC, -EIO, 0},         -ENOSPC,    false},
                {IO_READ,  0,      {0, -ENODATA, -EIO},        -ENODATA,   false},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check_answer_of_errors(
                        cases[i].op, cases[i].flags, cases[i].errors, cases[i].answer, cases[i].lost);
}

/* ---- parts at the same time ---- */

static const struct {
        enum io_op op;
        uint32_t length;
        unsigned parts;
} wide[] = {
        {IO_FLUSH,        0,               CHILDREN},
        {IO_DISCARD,      9 * 4096,        CHILDREN},
        {IO_WRITE_ZEROES, 9 * 4096,        CHILDREN},
        {IO_READ,         CHILDREN * 4096, CHILDREN},
        {IO_WRITE,        4 * 4096,        4       },
};

static void test_the_parts_of_a_request_run_at_the_same_time(void)
{
        for (size_t k = 0; k < ARRAY_SIZE(wide); k++) {
                struct target_host host;

                if (!CHECK(open_recorders(&host)))
                        return;
                clear_calls();
                slow = true;
                CHECK_INT(target_host_one(&host, wide[k].op, 0, 0, wide[k].length),
                        wide[k].op == IO_READ || wide[k].op == IO_WRITE ? (int)wide[k].length : 0);
                CHECK_INT(most, wide[k].parts);
                CHECK_INT(call_count, wide[k].parts);
                CHECK(calls[0].device == recorder_of(&host, CHILDREN - 1)); /* the first to end */
                target_host_close(&host);
        }
}

/* The request that touches one child stays on its own coroutine, where the child is called. */
static void note_coroutines(const struct target_io *io)
{
        const struct io_loop *loop = io_loop_of(io->queue);

        CHECK_INT(loop->coroutines.busy - loop->residents, 1); /* that of actions is a resident */
}

static void test_one_part_takes_no_coroutine(void)
{
        struct target_host host;

        if (!CHECK(open_recorders(&host)))
                return;
        clear_calls();
        slow = true;
        on_begin = note_coroutines;
        CHECK_INT(target_host_one(&host, IO_READ, 0, 4096, 4096), 4096);
        CHECK_INT(target_host_one(&host, IO_DISCARD, 0, 4096, 512), 0);
        CHECK_INT(call_count, 2);
        target_host_close(&host);
}

static void test_without_coroutines_each_part_waits_for_the_one_before(void)
{
        for (size_t k = 0; k < ARRAY_SIZE(wide); k++) {
                struct target_host host;

                if (!CHECK(open_recorders_with(&host, 0)))
                        return;
                clear_calls();
                slow = true;
                errors[1] = -ENOLINK;
                CHECK_INT(target_host_one(&host, wide[k].op, 0, 0, wide[k].length), -ENOLINK);
                CHECK_INT(most, 1);
                CHECK_INT(call_count, wide[k].parts);
                for (unsigned i = 0; i < CHILDREN; i++)
                        CHECK(calls[i].device == recorder_of(&host, i));
                target_host_close(&host);
        }
}

/* A request with one part more than a request has coroutines at a time. Each part is performed once; without coroutines of its own, in
 * their order. */
static void test_a_request_with_many_parts(int reserved)
{
        enum { PARTS = HOST_DATA_SIZE / 4096 };
        unsigned seen[PARTS] = {};
        struct target_host host;

        _Static_assert(PARTS > 1 + TARGET_CHILDREN_MAX, "the last one is divided when others have ended");
        if (!CHECK(open_recorders_with(&host, reserved)))
                return;
        clear_calls();
        CHECK_INT(target_host_one(&host, IO_READ, 0, 0, HOST_DATA_SIZE), HOST_DATA_SIZE);
        CHECK_INT(call_count, PARTS);
        for (unsigned i = 0; i < call_count; i++) {
                unsigned part = (unsigned)(calls[i].offset / 4096) * CHILDREN;

                while (part % CHILDREN < CHILDREN - 1
                        && calls[i].device != recorder_of(&host, part % CHILDREN))
                        part++;
                CHECK_INT(calls[i].length, 4096);
                if (CHECK(part < PARTS))
                        seen[part]++;
                CHECK(reserved != 0 || part == i);
        }
        for (unsigned part = 0; part < PARTS; part++)
                CHECK_INT(seen[part], 1);
        target_host_close(&host);
}

/* All tags, each of which wants more coroutines than it has, and together more than there are in a queue. */
static void test_all_requests_fan_out(int reserved)
{
        int wanted = HOST_DEPTH * (reserved >= 0 ? reserved : CHILDREN - 1);
        int there = wanted < TARGET_QUEUE_CHILDREN_MAX ? wanted : TARGET_QUEUE_CHILDREN_MAX;
        struct host_request requests[HOST_DEPTH];
        struct target_host host;

        if (!CHECK(open_recorders_with(&host, reserved)))
                return;
        clear_calls();
        slow = true;
        CHECK_INT(wait_room_stacks(&host.disk.device, 0, HOST_DEPTH), there);
        CHECK_INT(wait_room_stacks(&host.disk.device, 0, UINT16_MAX), reserved == 0 ? 0 : 64);
        for (unsigned i = 0; i < HOST_DEPTH; i++)
                requests[i] = (struct host_request){
                        .op = i % 2 == 0 ? IO_READ : IO_FLUSH, .length = i % 2 == 0 ? 9 * 4096 : 0};
        CHECK_INT(target_host_perform(&host, requests, HOST_DEPTH), 0);
        for (unsigned i = 0; i < HOST_DEPTH; i++)
                CHECK_INT(requests[i].result, i % 2 == 0 ? 9 * 4096 : 0);
        CHECK_INT(call_count, HOST_DEPTH / 2 * (9 + CHILDREN));
        CHECK_INT(most, HOST_DEPTH + there);
        CHECK_INT(running, 0);
        target_host_close(&host);
}

/* Also of those that ended later, and of those behind the place where coroutines ran out. */
static void test_the_error_of_each_slow_child_counts(void)
{
        for (int reserved = 0; reserved < CHILDREN; reserved++)
                for (unsigned bad = 0; bad < CHILDREN; bad++) {
                        struct target_host host;

                        if (!CHECK(open_recorders_with(&host, reserved)))
                                return;
                        clear_calls();
                        slow = true;
                        errors[bad] = -EIO;
                        errors[(bad + 1) % CHILDREN] = -EAGAIN;
                        CHECK_INT(target_host_one(&host, IO_FLUSH, 0, 0, 0), -EIO);
                        CHECK_INT(call_count, CHILDREN);
                        CHECK(durability_is_lost(&host.durability));
                        target_host_close(&host);
                }
}

static int half_way = -1; /* where a worker writes what it has reached */

static void reach(char what)
{
        CHECK_INT(write(half_way, &what, 1), 1);
}

static bool flushed;

/* The first child is flushed after the others have begun on their coroutines, and these never end. */
static int flush_half(struct target_io *io)
{
        int r = await_timeout(io->queue, number_of(io) > 0 ? UINT64_MAX / 4 : 1);

        flushed = true;
        reach('f');
        return r;
}

/* It ends after a turn of the loop behind the end of the first child: a flush that waited for no more is answered before. */
static int read_behind(struct target_io *io)
{
        bool over;
        int r;

        do {
                over = flushed;
                r = await_timeout(io->queue, 100000);
        } while (r >= 0 && !over);
        reach('r');
        return r < 0 ? r : (int)io->length;
}

static void answer_flush_co(void *argument)
{
        struct host_request *request = argument;

        (void)perform_co(&request->io, request->durability);
        reach('a');
}

static void read_co(void *argument)
{
        struct host_request *request = argument;

        (void)perform_co(&request->io, request->durability);
}

static void serve_half(int end)
{
        struct host_request requests[] = {
                {.io = {.op = IO_FLUSH}}, {.io = {.op = IO_READ, .length = 4096, .tag = 1}}};
        struct target_host host;

        half_way = end;
        clear_calls();
        recorder.flush = flush_half;
        recorder.read = read_behind;
        if (!open_recorders(&host))
                return;
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                requests[i].io.queue = &host.loop.queue;
                requests[i].io.data = requests[i].io.op == IO_READ ? target_host_data(&host, 1) : NULL;
                requests[i].durability = &host.durability;
                CHECK_INT(
                        co_start(&host.loop.coroutines, i == 0 ? answer_flush_co : read_co, &requests[i]), 0);
        }
        (void)loop_drive(&host.loop);
}

/* A worker that dies in the middle of a flush has not answered it, whatever part of it was done. */
static void test_a_worker_that_dies_half_way_has_not_answered(void)
{
        char reached[8];
        int ends[2], status;
        pid_t pid;

        if (!CHECK_INT(pipe2(ends, O_CLOEXEC), 0))
                return;
        pid = fork();
        if (pid == 0) {
                serve_half(ends[1]);
                _exit(0);
        }
        close_fd(ends[1]);
        CHECK_INT(read(ends[0], &reached[0], 1), 1);
        CHECK_INT(reached[0], 'f');
        CHECK_INT(read(ends[0], &reached[1], 1), 1);
        CHECK_INT(reached[1], 'r'); /* not 'a' */
        CHECK_INT(kill(pid, SIGKILL), 0);
        CHECK_INT(waitpid(pid, &status, 0), pid);
        CHECK(WIFSIGNALED(status));
        CHECK_INT(read(ends[0], &reached[2], sizeof(reached) - 2), 0);
        close_fd(ends[0]);
}

int main(void)
{
        if (!io_uring_is_there())
                return CHECK_SKIP;
        test_a_part_of_a_part_with_a_length_wants_no_more();
        test_a_discard_reaches_each_child_once();
        test_the_error_of_each_child_counts();
        test_a_discard_with_fua_is_flushed();
        test_an_error_that_loses_data_is_the_answer();
        test_the_parts_of_a_request_run_at_the_same_time();
        test_one_part_takes_no_coroutine();
        test_without_coroutines_each_part_waits_for_the_one_before();
        for (int reserved = -1; reserved <= CHILDREN; reserved++) {
                test_a_request_with_many_parts(reserved);
                test_all_requests_fan_out(reserved);
        }
        test_the_error_of_each_slow_child_counts();
        test_a_worker_that_dies_half_way_has_not_answered();
        return check_report();
}
