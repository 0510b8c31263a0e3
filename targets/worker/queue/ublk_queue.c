/* SPDX-License-Identifier: MIT */
/* One hardware queue: its loop, its opening and closing. What becomes of its requests is in queue_requests.c.
 *
 * The fence. /dev/ublkcN is fixed file 0 of the ring, and there is no other reference to it but the mapping
 * of the descriptors. The backend's files are fixed files of the same ring. So when this process dies, the
 * device is released only when the ring is freed, and that is after the last request of the ring has
 * finished: as long as a write of ours is on its way to the backing store, START_USER_RECOVERY returns EBUSY and
 * there is no successor whose newer data it could overwrite. -DUBLKD_TEST_WITHOUT_FENCE builds the same
 * program without it, for the test that shows the difference.
 *
 * To free a ring takes the kernel tens of milliseconds (grace periods of RCU: io_ring_exit_work()), which a
 * recovery would wait for. Where I/O ends with the process (target_device.io_ends_with_process) the tables of
 * descriptors are the fence. Each queue's thread has its own, which it shares with its threads of io-wq
 * (create_io_thread(), kernel/fork.c), and the main thread has another. Such a table closes /dev/ublkcN when the
 * last of its threads ends (exit_files()), which is after its last system call; so the last table to do so does it
 * after the last system call of all.
 * Before that io_uring_clean_tctx() has waited for the threads of io-wq: what was queued for them is done or
 * cancelled by then. The commands hold the file, too, and the kernel takes them back as soon as the
 * ring is closed. So the ring holds no file then; the lock on the backing store also goes at once. It costs a
 * look-up of the descriptor for each command: where there is one for each request, and with user copy, where
 * /dev/ublkcN is read and written for each, the ring stays the fence; with zero copy the driver waits for the
 * ring in any case (ublk_ch_release_work_fn()).
 *
 * Such a ring takes commands for each descriptor of its thread's table. None of these is a socket: the commands of
 * sockets would be what the filter of system calls refuses (an option, a pidfd of ublkd). Of a thread that got no table
 * of its own, the ring holds the files, so that it takes no others. */
#include "targets/worker/queue/ublk_queue.h"
#include "targets/worker/queue/queue_requests.h"
#include "targets/worker/wait/wait_room.h"

#include <sys/mman.h>

enum { TICK_SECONDS = 1 };

/* ---- memory that is not needed any more ---- */

static void send_tick(struct ublk_queue *queue)
{
        static struct __kernel_timespec time = {.tv_sec = TICK_SECONDS};
        struct io_uring_sqe *sqe = io_loop_sqe(&queue->loop);

        if (!sqe)
                return;
        io_uring_prep_timeout(sqe, &time, 0, 0);
        sqe->flags |= queue->loop.file_flags;
        io_uring_sqe_set_data64(sqe, USER_DATA_TICK);
        queue->ticking = true;
}

/* After the completions. See io_data.c for why none may be left. */
static void give_back(struct ublk_queue *queue)
{
        int more = 0;

#ifdef UBLKD_TEST_RESTLESS
        queue->ticked = true;
#endif
        if (__builtin_expect(queue->ticked, 0) && io_uring_cq_ready(&queue->loop.ring) == 0
                && !io_uring_cq_has_overflow(&queue->loop.ring)) {
                ublk_port_keep_uncommitted(&queue->port);
                more = io_data_tick(&queue->data);
                queue->ticked = false;
        }
        if (more < 0)
                queue->port.failure = more;
        if ((more > 0 || queue->data.used) && !queue->ticking && queue->data.gives_back)
                send_tick(queue);
}

/* ---- requests that are late ---- */

/* A tick has come. Return whether requests are under way. */
static bool look_for_late(struct ublk_queue *queue)
{
        const struct queue_stats *stats = queue->meter.stats;

        queue->look_due = false;
        if (!stats) /* this program keeps none */
                return false;
        if (queue_action_is_late(&queue->action))
                (void)io_loop_nudge(&queue->loop);
        if (late_look(&queue->late, stats) && io_loop_nudge(&queue->loop))
                queue_meter_nudged(&queue->meter);
        return late_is_under_way(&queue->late) || queue_action_reads(&queue->action);
}

/* Each round without a tick under way: a request has come, or the tick has. A queue without requests has no tick. Not
 * inlined: most rounds do without. */
__attribute__((noinline)) static void watch(struct ublk_queue *queue)
{
        bool wanted = !queue->look_due || look_for_late(queue);

        if (wanted && !queue->ticking)
                send_tick(queue);
        queue->watched = queue->ticking;
}

/* ---- the loop ---- */

int ublk_queue_fetch(struct ublk_queue *queue)
{
        return ublk_port_fetch(&queue->port);
}

/* ---- limits and patience ---- */

static void follow_control(struct ublk_queue *queue)
{
        struct region_values values;

        if (__builtin_expect(!queue_control_changed(&queue->control, &values), 1))
                return;
        queue->busy_poll = values.busy_poll_us * 1000;
        if (queue->leave.wanted) /* what is held back stays so */
                return;
        throttle_set(&queue->throttle, values.limits,
                queue->loop.queue.device->queues + (queue->action.port ? 1 : 0), queue->max_io_size);
}

/* While the store is full, every write reports whether it found room. */
static unsigned plain_allowed(const struct ublk_queue *queue)
{
        unsigned reads = IO_READ + 1;

        return queue->room.full && queue->plain_operations > reads ? reads : queue->plain_operations;
}

static void begin_throttled(struct ublk_queue *queue)
{
        struct throttled *throttled;

        throttle_round(&queue->throttle);
        while ((throttled = throttle_next(&queue->throttle)))
                queue_requests_begin(
                        queue, (struct request *)((char *)throttled - offsetof(struct request, throttled)));
        /* While there are limits, every request has to ask first; of a store that was cut off, none is
         * served.
         */
        queue->plain.operations =
                queue->throttle.limited || !queue->store_end.holds ? 0 : plain_allowed(queue);
}

/* Sends what there is, and waits for something to do. */
static int submit(struct ublk_queue *queue)
{
        bool wait = !ublk_port_is_stuck(&queue->port);

        if (queue->port.class->send)
                queue->port.class->send(&queue->port);
        if (__builtin_expect(!wait || (queue->busy_poll == 0 && !queue->throttle.limited), 1))
                return io_loop_submit(&queue->loop, wait);
        return io_loop_submit_for(&queue->loop, queue->busy_poll, throttle_wait(&queue->throttle));
}

/* Without requests, for the coroutines of the background that have not ended. No meter counts what they
 * perform, so the threads of the ring are woken with each tick: see io_loop_nudge(). */
static int turn_to_stop(struct io_loop *loop, bool wait)
{
        struct ublk_queue *queue = (struct ublk_queue *)loop;
        int r;

        if (queue->look_due)
                (void)io_loop_nudge(loop);
        queue->look_due = false;
        if (wait && !queue->ticking)
                send_tick(queue);
        r = io_loop_submit(loop, wait);
        if (r < 0)
                return r;
        queue->take_completions(queue);
        io_loop_run_ready(loop);
        return queue->port.failure;
}

/* ---- leaving ---- */

/* In each round from the call on. serve() is to wait for a completion next, so with nothing in hand the answers are brought
 * to the driver here. Not inlined, and not a loop beside serve(): what that calls once is inlined there. */
__attribute__((noinline)) static void leave(struct ublk_queue *queue)
{
        queue_requests_leave(queue);
        queue->watched = false; /* the next round comes here, too */
        while (queue->port.failure == 0 && queue_requests_in_hand(queue) == 0
                && !ublk_port_is_stuck(&queue->port)) {
                int r;

                if (queue->port.class->settled(&queue->port)) {
                        queue_leave_report(&queue->leave);
                        return;
                }
                if (queue->port.class->send)
                        queue->port.class->send(&queue->port);
                r = io_loop_submit(&queue->loop, false);
                if (r < 0)
                        queue->port.failure = r;
                queue->take_completions(queue);
                io_loop_run_ready(&queue->loop);
        }
}

/* ---- serving ---- */

static int serve(struct ublk_queue *queue)
{
        while (!queue->port.class->finished(&queue->port)) {
                int r = submit(queue);

                if (r < 0)
                        return r;
                queue_meter_round(&queue->meter);
                store_end_round(&queue->store_end);
                room_round(&queue->room);
                follow_control(queue);
                begin_throttled(queue);
                ublk_port_commit_unsent(&queue->port);
                queue->take_completions(queue);
                give_back(queue);
                io_loop_run_ready(&queue->loop);
                queue_requests_begin_waiting(queue);
                if (__builtin_expect(!queue->watched, 0)) {
                        watch(queue);
                        if (__builtin_expect(queue->leave.wanted, 0))
                                leave(queue);
                }
                if (__builtin_expect(queue->port.failure < 0, 0))
                        return queue->port.failure;
        }
        return 0;
}

int ublk_queue_run(struct ublk_queue *queue)
{
        int r = wait_room_run(&queue->loop);

        if (r >= 0)
                r = queue_action_begin(&queue->action);
        if (r >= 0) {
                queue_leave_await(&queue->leave, &queue->loop);
                r = serve(queue);
        }
        if (r >= 0)
                r = queue_action_stop(&queue->action, turn_to_stop);
        return r < 0 ? r : wait_room_stop(&queue->loop, turn_to_stop);
}

/* ---- opening and closing ---- */

/* The driver lays the queues' descriptors out as if each had the greatest depth. */
static int map_descriptors(struct ublk_queue *queue, int command_fd)
{
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        size_t size = (queue->depth * sizeof(struct ublksrv_io_desc) + page - 1) / page * page;
        size_t stride = (UBLK_MAX_QUEUE_DEPTH * sizeof(struct ublksrv_io_desc) + page - 1) / page * page;
        void *descriptors = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_POPULATE, command_fd,
                (off_t)(UBLKSRV_CMD_BUF_OFFSET + queue->loop.queue.index * stride));

        if (descriptors == MAP_FAILED)
                return -errno;
        queue->descriptors = descriptors;
        queue->descriptors_size = size;
        return 0;
}

static int make_requests(struct ublk_queue *queue)
{
        queue->requests = aligned_alloc(_Alignof(struct request), queue->depth * sizeof(*queue->requests));
        if (!queue->requests)
                return -ENOMEM;
        for (uint16_t tag = 0; tag < queue->depth; tag++) {
                struct request *request = &queue->requests[tag];

                *request = (struct request){
                        .descriptor = &queue->descriptors[tag],
                        .success = ublk_batch_element(&queue->port, tag, 0),
                };
                request->io.queue = &queue->loop.queue;
                request->io.tag = tag;
                request->data.address = io_data_of(&queue->data, tag);
                request->data.buffer.index = tag;
        }
        queue->moved = calloc(queue->depth, sizeof(*queue->moved));
        if (!queue->moved)
                return -ENOMEM;
        return tag_queue_init(&queue->waiting, queue->depth);
}

static int start_target(struct ublk_queue *queue)
{
        const struct target_device *device = queue->loop.queue.device;
        const struct target *target = device->target;
        int r;

        if (device->queues_kept)
                queue->loop.queue.kept = &device->queues_kept[queue->loop.queue.index];
        if (target->queue_size > 0) {
                queue->loop.queue.state = calloc(1, target->queue_size);
                if (!queue->loop.queue.state)
                        return -ENOMEM;
        }
        r = target->start_queue ? target->start_queue(&queue->loop.queue) : 0;
        queue->target_started = r >= 0;
        return r;
}

bool ublk_queue_needs_node(const struct target_device *device, const struct data_route *route)
{
#ifdef UBLKD_TEST_WITHOUT_FENCE
        (void)device;
        (void)route;
        return true;
#else
        return device->io_ends_with_process && route->batch && route->path == DATA_PATH_COPY;
#endif
}

static enum io_loop_holder holder_of(const struct ublk_queue_setup *setup)
{
        return !setup->shares_table && ublk_queue_needs_node(setup->device, &setup->route)
                       ? IO_LOOP_HELD_BY_PROCESS
                       : IO_LOOP_HELD_BY_RING;
}

static int queue_open(struct ublk_queue *queue, const struct ublk_queue_setup *setup)
{
        unsigned stacks = queue->profile.direct ? 0 : setup->depth;
        int r;

        stacks += wait_room_stacks(setup->device, setup->index, setup->depth)
                  + queue_action_stacks(setup->device, setup->index);
        r = io_loop_init(&queue->loop, setup->device, setup->index, setup->depth, stacks, setup->command_fd,
                holder_of(setup));
        if (r >= 0)
                r = wait_room_open(&queue->loop, setup->depth, setup->work, &queue->port.failure);
        if (r >= 0)
                r = queue_action_open(&queue->action, &queue->loop, setup->shared->actions, &queue->throttle,
                        setup->max_io_size, &queue->port.failure);
        if (r >= 0)
                r = queue_leave_open(&queue->leave, &queue->loop, setup->leave);
        if (r < 0)
                return r;
        if (setup->cpus) /* else its kernel threads would run anywhere; kernels that cannot do without */
                (void)io_uring_register_iowq_aff(&queue->loop.ring, sizeof(*setup->cpus), setup->cpus);
        r = map_descriptors(queue, setup->command_fd);
        if (r < 0)
                return r;
        r = io_data_init(&queue->data, &queue->loop, &setup->route, setup->depth, setup->max_io_size,
                setup->shared->pagemap);
        if (r >= 0)
                r = ublk_port_init(&queue->port, &queue->loop, &queue->data, setup->depth);
        if (r < 0)
                return r;
        queue->plain = plain_rules_of(setup->device, &queue->data, &queue->loop, setup->max_io_size);
        queue->plain_operations = queue->plain.operations;
        queue_requests_choose_profile(queue);
        r = make_requests(queue);
        if (r >= 0)
                r = start_target(queue);
        return r < 0 ? r : io_loop_start(&queue->loop);
}

int ublk_queue_open(const struct ublk_queue_setup *setup, struct ublk_queue **ret)
{
        _cleanup_(ublk_queue_close_pointer) struct ublk_queue *queue = calloc(1, sizeof(*queue));
        int r;

        if (!queue)
                return -ENOMEM;
        queue->depth = setup->depth;
        queue->max_io_size = setup->max_io_size;
        queue->served = setup->served;
        queue->control.region = setup->shared->region;
        throttle_open(&queue->throttle, setup->shared->region, setup->index);
        queue->durability = (struct durability){.shared = setup->shared,
                .witnesses = setup->witnesses,
                .witness_count = setup->witness_count};
        room_open(&queue->room, setup->shared);
        store_end_open(&queue->store_end, setup->device, setup->shared);
        queue_meter_open(&queue->meter, setup->shared, setup->index);
        queue->profile.direct = (setup->device->target->desc->flags & TARGET_NEVER_WAITS)
                                && setup->route.path == DATA_PATH_COPY;
        queue->watched = queue->profile.direct;
        r = queue_open(queue, setup);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(queue);
        return 0;
}

struct ublk_queue *ublk_queue_close(struct ublk_queue *queue)
{
        const struct target *target;

        if (!queue)
                return NULL;
        target = queue->loop.queue.device ? queue->loop.queue.device->target : NULL;
        if (queue->target_started && target->stop_queue)
                target->stop_queue(&queue->loop.queue);
        free(queue->loop.queue.state);
        wait_room_close(&queue->loop);
        ublk_port_destroy(&queue->port);
        io_loop_destroy(&queue->loop);
        io_data_destroy(&queue->data);
        if (queue->descriptors)
                (void)munmap((void *)(uintptr_t)queue->descriptors, queue->descriptors_size);
        free(queue->requests);
        free(queue->moved);
        free(queue->waiting.tags);
        free(queue);
        return NULL;
}
