/* SPDX-License-Identifier: MIT */
/* What the targets of a tree wait for beside requests: each has its own files, places and coroutines of the background, as if it were
 * alone, and those of a child outlive those of the target above it. */
#include "tests/target/target_host.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"
#include "targets/target_wait.h"
#include "targets/worker/wait/wait_room.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

enum { NODES = 3, SIZE = 1 << 20 };

static struct target targets[NODES];
static struct target_desc descs[NODES];
static int files[NODES][2], places[NODES][2]; /* a stream for each: the target receives from the first end */
static char events[256];
static unsigned received, worked;

/* ---- the target of each node ---- */

static unsigned node_of(const struct target_queue *queue)
{
        const struct target_queue *const *queues = queue->of_disk->state; /* of struct stack_queue */

        return (unsigned)(queue - queues[0]);
}

static void note(char what, const struct target_queue *queue, unsigned number)
{
        size_t used = strlen(events);

        snprintf(events + used, sizeof(events) - used, "%c%u.%u ", what, node_of(queue), number);
}

static int open_node(struct target_device *device, struct target_geometry *ret, struct problem_list *problems)
{
        int fd = fcntl(files[device->target - targets][0], F_DUPFD_CLOEXEC, 0);

        (void)problems;
        if (fd < 0)
                return -errno;
        device->files[device->file_count++] = fd;
        *ret = (struct target_geometry){.size = SIZE};
        return 0;
}

static uint64_t size_of_node(const struct target_device *device, const uint64_t *sizes)
{
        (void)device;
        (void)sizes;
        return SIZE;
}

static int start_queue(struct target_queue *queue)
{
        return target_queue_set_file(queue, TARGET_QUEUE_FILE, places[node_of(queue)][0]);
}

static int read_nothing(struct target_io *io)
{
        return (int)io->length;
}

static int work_run(void *argument)
{
        (*(unsigned *)argument)++;
        return 3;
}

static void receive(struct target_queue *queue, unsigned file, char first)
{
        char letter = '\0';

        CHECK_INT(await_fd(queue, file, POLLIN), POLLIN);
        CHECK_INT(await_recv(queue, file, &letter, 1), 1);
        CHECK_INT(letter, first + (char)node_of(queue));
        received++;
}

static void background(struct target_queue *queue, unsigned number)
{
        char letter;

        note('+', queue, number);
        receive(queue, 0, 'a');
        receive(queue, TARGET_QUEUE_FILE, 'A');
        if (node_of(queue) == 2)
                CHECK_INT(await_work(queue, work_run, &worked), 3);
        received++;
        CHECK_INT(await_recv_some(queue, TARGET_QUEUE_FILE, &letter, 1), -ECANCELED);
        note(target_queue_stopping(queue) ? '-' : 'c', queue, number);
}

static void device_background(struct target_queue *queue, unsigned number)
{
        note('d', queue, number);
        CHECK_INT(await_timeout(queue, UINT64_C(3600000000000)), -ECANCELED);
        note('D', queue, number);
}

/* ---- the tree ---- */

static const struct target_waits reserved[NODES] = {
        {.background = 1, .files = 1},
        {.children = 2, .background = 2, .device_background = 1, .files = 1},
        {.background = 1, .device_background = 1, .files = 1, .work_threads = 1},
};

static bool put_targets(struct stack_config *stack)
{
        if (!CHECK_INT(stack->tree->count, NODES))
                return false;
        for (unsigned i = 0; i < NODES; i++) {
                descs[i] = *stack->tree->nodes[i].desc;
                descs[i].flags = TARGET_ONE_QUEUE;
                descs[i].needs = TARGET_NEEDS_NETWORK;
                descs[i].waits = reserved[i];
                targets[i] = (struct target){.desc = &descs[i],
                        .open = open_node,
                        .size = size_of_node,
                        .start_queue = start_queue,
                        .background = background,
                        .device_background = device_background,
                        .read = read_nothing};
                stack->targets[i] = &targets[i];
                stack->tree->nodes[i].desc = &descs[i];
        }
        stack_make(stack->tree, stack);
        return true;
}

static bool open_tree(struct target_host *host)
{
        static const char tree[] =
                "{\"target\":{\"type\":\"linear\",\"child\":{\"type\":\"linear\",\"child\":{"
                "\"type\":\"null\"}}},\"size\":1048576}";
        _cleanup_problems_ struct problem_list problems = {};

        return CHECK_INT(target_host_configure(host, tree, 1, &problems), 0)
               && put_targets(host->config.stack) && CHECK_INT(target_host_start(host, &problems), 0);
}

static void send_letters(void)
{
        for (unsigned i = 0; i < NODES; i++)
                for (unsigned k = 0; k < reserved[i].background; k++) {
                        const char letters[] = {(char)('a' + i), (char)('A' + i)};

                        CHECK_INT(write(files[i][1], &letters[0], 1), 1);
                        CHECK_INT(write(places[i][1], &letters[1], 1), 1);
                }
}

/* Of the outermost target. */
static void cancel_co(void *argument)
{
        struct target_host *host = argument;
        struct target_queue *const *queues = host->loop.queue.state;

        CHECK_INT(await_cancel(queues[0], TARGET_QUEUE_FILE), 1);
}

static void test_each_target_has_its_own(void)
{
        static const char begun[] = "d2.0 d1.0 +2.0 +1.0 +1.1 +0.0 ";
        struct target_host host;

        if (!open_tree(&host))
                return;
        CHECK_STR(events, begun);
        CHECK_INT(wait_room_stacks(&host.disk.device, 0, 1), 2 * (1 + 6) + 6 + 1);
        send_letters();
        while (received < 3 * 4 && CHECK_INT(loop_turn(&host.loop), 0))
                continue;
        CHECK_INT(worked, 1);
        /* What the others wait for in their places goes on. */
        CHECK_INT(co_start(&host.loop.coroutines, cancel_co, &host), 0);
        while (!strstr(events, "c0.0") && CHECK_INT(loop_turn(&host.loop), 0))
                continue;
        target_host_close(&host);
        CHECK_STR(events, "d2.0 d1.0 +2.0 +1.0 +1.1 +0.0 c0.0 -1.1 -1.0 -2.0 D1.0 D2.0 ");
}

int main(void)
{
        if (!io_uring_is_there())
                return CHECK_SKIP;
        for (unsigned i = 0; i < NODES; i++) {
                CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, files[i]), 0);
                CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, places[i]), 0);
        }
        test_each_target_has_its_own();
        return check_report();
}
