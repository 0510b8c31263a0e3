/* One hardware queue: fetches its requests, has them performed, commits the answers.
 *
 * The fence. /dev/ublkcN is fixed file 0 of the ring, and there is no other reference to it but the mapping
 * of the descriptors. The backend's files are fixed files of the same ring. So when this process dies, the
 * device is let go of only when the ring is freed, and that is after the last request of the ring has
 * finished: as long as a write of ours is on its way to the backing store, START_USER_RECOVERY says EBUSY and
 * there is no successor whose newer data it could overwrite. -DUBLKD_TEST_WITHOUT_FENCE builds the same
 * program without it, for the test that shows the difference.
 *
 * To free a ring takes the kernel tens of milliseconds (grace periods of RCU: io_ring_exit_work()), which a
 * recovery would wait for. Where I/O ends with the process (target_device.io_ends_with_process) its table of
 * descriptors is the fence: all threads share it, those of io-wq as well (create_io_thread(), kernel/fork.c),
 * and it closes /dev/ublkcN when the last of them ends (exit_files()), which is after its last system call.
 * Before that io_uring_clean_tctx() has waited for the threads of io-wq, and of what they had not begun
 * nothing is done any more. The commands hold the file, too, and the kernel takes them back as soon as the
 * ring is closed. So the ring holds no file then; the lock on the backing store also goes at once. It costs a
 * look-up of the descriptor for each command: where there is one for each request, and with user copy, where
 * /dev/ublkcN is read and written for each, the ring stays the fence; with zero copy the driver waits for the
 * ring in any case (ublk_ch_release_work_fn()).
 *
 * Every request that arrives is committed exactly once, because a callback returns exactly once. */
#include "targets/worker/ublk_queue.h"
#include "targets/worker/io_data.h"
#include "targets/worker/io_loop.h"
#include "targets/worker/perform.h"
#include "targets/worker/plain.h"
#include "targets/worker/queue_control.h"
#include "targets/worker/queue_meter.h"
#include "targets/worker/throttle.h"
#include "targets/worker/ublk_port.h"
#include "ublkd/base/ublk_uapi.h"

#include <string.h>
#include <sys/mman.h>

enum { TICK_SECONDS = 1 };

/* One per tag. */
struct request {
        struct target_io io;
        struct request_meter meter;
        struct throttled throttled;
        const struct ublksrv_io_desc *descriptor; /* written by the driver; stays until the answer */
        void *data;                               /* of reads and writes, as in struct target_io */
        bool registered;                          /* zero copy: the driver has registered its pages */
};

struct ublk_queue {
        struct io_loop loop;
        struct io_data data;
        struct queue_meter meter;
        struct queue_control control;
        struct throttle throttle;
        uint64_t busy_poll;                        /* nanoseconds */
        uint32_t max_io_size;                      /* bytes */
        const struct ublksrv_io_desc *descriptors; /* written by the driver, one per tag */
        size_t descriptors_size;
        struct request *requests;
        struct ublk_port port;
        struct tag_queue waiting; /* arrived, but there was no stack to run them on */
        unsigned depth;
        struct plain_rules plain;
        unsigned plain_operations; /* as long as nothing limits them */
        bool direct;               /* requests are performed without a coroutine: nothing of them waits */
        bool ticking;              /* a tick is under way */
        bool ticked;               /* and has come */
        bool target_started;
        atomic_bool *served;
};

static const enum io_op operations[] = {
        [UBLK_IO_OP_READ] = IO_READ,
        [UBLK_IO_OP_WRITE] = IO_WRITE,
        [UBLK_IO_OP_FLUSH] = IO_FLUSH,
        [UBLK_IO_OP_DISCARD] = IO_DISCARD,
        [UBLK_IO_OP_WRITE_SAME] = _IO_OP_MAX,
        [UBLK_IO_OP_WRITE_ZEROES] = IO_WRITE_ZEROES,
};

/* ---- requests from the driver ---- */

/* Reads the driver's descriptor. What is beyond this program's means gets an operation that nobody has. */
static void describe(struct ublk_queue *queue, struct request *request)
{
        const struct ublksrv_io_desc *descriptor = request->descriptor;
        uint32_t op_flags = descriptor->op_flags, op = op_flags & UBLK_OPERATION_MASK;
        uint64_t length = (uint64_t)descriptor->nr_sectors << SECTOR_SHIFT;
        struct target_io *io = &request->io;

        io->op = op < ARRAY_SIZE(operations) ? operations[op] : _IO_OP_MAX;
        io->flags = (op_flags & UBLK_IO_F_FUA ? IO_FUA : 0) | (op_flags & UBLK_IO_F_NOUNMAP ? IO_NOUNMAP : 0);
        io->offset = descriptor->start_sector << SECTOR_SHIFT;
        io->length = (uint32_t)length;
        io->data = NULL;
        if (io->op == IO_FLUSH) { /* has no place: the driver passes on whatever the block layer left there */
                io->offset = 0;
                io->length = 0;
                return;
        }
        if (length > UINT32_MAX || descriptor->start_sector > UINT64_MAX >> SECTOR_SHIFT)
                io->op = _IO_OP_MAX;
        if (io->op == IO_READ || io->op == IO_WRITE) {
                io->data = request->data;
                request->registered = queue->data.route.auto_buffers && !(op_flags & UBLK_IO_F_NEED_REG_BUF);
                if (io->data && length > queue->data.stride)
                        io->op = _IO_OP_MAX;
                else
                        io_data_take(&queue->data, io->tag, io->length);
        }
}

/* The one place where a request is answered. */
__attribute__((always_inline)) static inline void answer(
        struct ublk_queue *queue, struct request *request, int result)
{
        io_data_return(&queue->data, request->io.tag);
        ublk_port_commit(&queue->port, request->io.tag, result);
}

/* Of a request that has been described. */
static inline void request_ends(struct ublk_queue *queue, struct request *request, int result)
{
        queue_meter_ended(&queue->meter, &request->meter, request->io.length, result);
        answer(queue, request, result);
}

/* Whether nothing but its target stands between the request and its bytes. */
static inline bool data_is_ready(const struct ublk_queue *queue, const struct request *request)
{
        return !queue->data.moves || request->registered;
}

/* What has to be moved or registered first, and what after it. Its locals shall not burden requests without
 * such needs. */
__attribute__((noinline)) static int perform_moving_co(struct ublk_queue *queue, struct request *request)
{
        int r;

        if (io_data_falls_back(&queue->data, &request->io, request->registered))
                queue_meter_unregistered(&queue->meter);
        r = io_data_begin_co(&queue->data, &request->io, request->registered);
        if (r < 0)
                return r;
        return io_data_end_co(&queue->data, &request->io, request->registered, perform_co(&request->io));
}

/* The body of a request's coroutine. */
static void request_co(void *argument)
{
        struct request *request = argument;
        struct ublk_queue *queue = (struct ublk_queue *)io_loop_of(request->io.queue);

        if (!data_is_ready(queue, request))
                request_ends(queue, request, perform_moving_co(queue, request));
        else
                request_ends(queue, request, perform_co(&request->io));
}
_Static_assert(offsetof(struct ublk_queue, loop) == 0, "a queue's loop leads back to the queue");

/* False: not now, other requests must end first. */
static bool start(struct ublk_queue *queue, struct request *request)
{
        int r = co_start(&queue->loop.coroutines, request_co, request);

        if (__builtin_expect(r < 0, 0)) {
                if (queue->loop.coroutines.busy > 0)
                        return false;
                request_ends(queue, request, r);
        }
        return true;
}

static void start_waiting(struct ublk_queue *queue)
{
        while (queue->waiting.count > 0) {
                if (!start(queue, &queue->requests[tag_queue_first(&queue->waiting)]))
                        return;
                tag_queue_drop_first(&queue->waiting);
        }
}

static void begin_on_coroutine(struct ublk_queue *queue, struct request *request)
{
        if (queue->waiting.count > 0 || !start(queue, request))
                tag_queue_put(&queue->waiting, request->io.tag);
}

static void begin_any(struct ublk_queue *queue, struct request *request)
{
        if (queue->direct)
                request_ends(queue, request, perform_co(&request->io));
        else
                begin_on_coroutine(queue, request);
}

/* Not inlined: what most requests do without shall not burden them. */
__attribute__((noinline)) static void any_arrived(struct ublk_queue *queue, struct request *request)
{
        describe(queue, request);
        queue_meter_arrived(&queue->meter, &request->meter, request->io.op);
        if (queue->throttle.limited
                && throttle_hold(&queue->throttle, &request->throttled, request->io.op, request->io.length))
                return;
        begin_any(queue, request);
}

/* Of a target that never waits: it comes and ends here. */
static inline void plain_performed(struct ublk_queue *queue, struct request *request)
{
        int result;

        plain_describe(&request->io, request->descriptor, request->data);
        io_data_take(&queue->data, request->io.tag, request->io.length);
        result = perform_plain(&request->io);
        queue_meter_at_once(&queue->meter, request->io.op, request->io.length, result);
        answer(queue, request, result);
}

/* Of a linear disk: its completion is plain_moved(). False: there was no room for its operation. */
static inline bool plain_begun(struct ublk_queue *queue, struct request *request)
{
        const struct plain_data data = {.address = request->data, .buffer = request->io.tag};

        if (!plain_move(&queue->plain, &queue->loop, request->descriptor, &data, user_data_plain(request)))
                return false;
        io_data_take(&queue->data, request->io.tag, plain_length(request->descriptor));
        queue_meter_arrived(&queue->meter, &request->meter, plain_op(request->descriptor));
        return true;
}

/* A linear disk's request was moved, or not: see plain.h. `now`: when, or the round's time. */
static inline void plain_moved(struct ublk_queue *queue, struct request *request, int result, uint64_t now)
{
        uint32_t length = plain_length(request->descriptor);

        if (__builtin_expect(result == (int)length, 1)) {
                queue_meter_succeeded(&queue->meter, &request->meter, length, now);
                answer(queue, request, (int)length);
                return;
        }
        describe(queue, request);
        if (plain_has_failed(result))
                request_ends(queue, request, result);
        else
                begin_on_coroutine(queue, request);
}

/* Of a linear disk in memory. Not inlined: what most disks do without shall not burden them. */
__attribute__((noinline)) static void plain_moved_at_once(struct ublk_queue *queue, struct request *request)
{
        int result;

        io_data_take(&queue->data, request->io.tag, plain_length(request->descriptor));
        queue_meter_arrived(&queue->meter, &request->meter, plain_op(request->descriptor));
        result = plain_move_at_once(&queue->plain, request->descriptor, request->data);
        plain_moved(queue, request, result, queue_meter_look(&queue->meter));
}

/* The one place where a request comes in. */
static inline void request_arrived(struct ublk_queue *queue, uint16_t tag)
{
        struct request *request = &queue->requests[tag];

        if (__builtin_expect(plain_is(&queue->plain, request->descriptor), 1)) {
                if (plain_is_at_once(&queue->plain, request->descriptor)) {
                        plain_moved_at_once(queue, request);
                        return;
                }
                if (queue->plain.linear && plain_begun(queue, request))
                        return;
                if (queue->direct) {
                        plain_performed(queue, request);
                        return;
                }
        }
        any_arrived(queue, request);
}

static void command_completed(struct ublk_queue *queue, const struct io_uring_cqe *cqe)
{
        const uint16_t *tags;
        unsigned count = queue->port.class->completed(&queue->port, cqe, &tags);

        for (unsigned i = 0; i < count; i++) {
                if (__builtin_expect(tags[i] >= queue->depth, 0)) {
                        queue->port.failure = -EPROTO;
                        return;
                }
                request_arrived(queue, tags[i]);
        }
        if (__builtin_expect(count > 0 && !atomic_load_explicit(queue->served, memory_order_relaxed), 0))
                atomic_store_explicit(queue->served, true, memory_order_relaxed);
}

static inline void take_completion(struct ublk_queue *queue, const struct io_uring_cqe *cqe)
{
        switch (user_data_kind(cqe->user_data)) {
        case USER_DATA_AWAIT:
                io_loop_wake(&queue->loop, cqe->user_data, cqe->res);
                break;
        case USER_DATA_COMMAND:
                command_completed(queue, cqe);
                break;
        case USER_DATA_TICK:
                queue->ticking = false;
                queue->ticked = true;
                break;
        case USER_DATA_PLAIN:
                plain_moved(queue, user_data_of_plain(cqe->user_data), cqe->res, queue->meter.now);
                break;
        case _USER_DATA_KIND_MAX:
                break;
        }
}

/* Those that were there when it began: with new ones coming it would have no end. */
__attribute__((noinline)) static void take_completions(struct ublk_queue *queue)
{
        struct io_uring_cq *cq = &queue->loop.ring.cq;
        unsigned head = *cq->khead, tail = io_uring_smp_load_acquire(cq->ktail);

        for (; head != tail; head++)
                take_completion(queue, &cq->cqes[head & cq->ring_mask]);
        io_uring_smp_store_release(cq->khead, head);
}

/* ---- memory that is not needed any more ---- */

static void send_tick(struct ublk_queue *queue)
{
        static struct __kernel_timespec time = {.tv_sec = TICK_SECONDS};
        struct io_uring_sqe *sqe = io_loop_sqe(&queue->loop);

        if (!sqe)
                return;
        io_uring_prep_timeout(sqe, &time, 0, 0);
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
                ublk_port_keep_owed(&queue->port);
                more = io_data_tick(&queue->data);
                queue->ticked = false;
        }
        if (more < 0)
                queue->port.failure = more;
        if ((more > 0 || queue->data.used) && !queue->ticking && queue->data.gives_back)
                send_tick(queue);
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
        throttle_set(&queue->throttle, values.limits, queue->loop.queue.device->queues, queue->max_io_size);
}

static void begin_throttled(struct ublk_queue *queue)
{
        struct throttled *throttled;

        throttle_round(&queue->throttle);
        while ((throttled = throttle_next(&queue->throttle)))
                begin_any(queue, (struct request *)((char *)throttled - offsetof(struct request, throttled)));
        /* While there are limits, every request has to ask first. */
        queue->plain.operations = queue->throttle.limited ? 0 : queue->plain_operations;
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

int ublk_queue_run(struct ublk_queue *queue)
{
        while (!queue->port.class->finished(&queue->port)) {
                int r = submit(queue);

                if (r < 0)
                        return r;
                queue_meter_round(&queue->meter);
                follow_control(queue);
                begin_throttled(queue);
                ublk_port_commit_unsent(&queue->port);
                take_completions(queue);
                give_back(queue);
                io_loop_run_ready(&queue->loop);
                start_waiting(queue);
                if (__builtin_expect(queue->port.failure < 0, 0))
                        return queue->port.failure;
        }
        return 0;
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
        queue->requests = calloc(queue->depth, sizeof(*queue->requests));
        if (!queue->requests)
                return -ENOMEM;
        for (unsigned tag = 0; tag < queue->depth; tag++)
                queue->requests[tag] = (struct request){
                        .io = {.queue = &queue->loop.queue, .tag = (uint16_t)tag},
                        .descriptor = &queue->descriptors[tag],
                        .data = io_data_of(&queue->data, (uint16_t)tag),
                };
        return tag_queue_init(&queue->waiting, queue->depth);
}

static int start_target(struct ublk_queue *queue)
{
        const struct target *target = queue->loop.queue.device->target;
        int r;

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
        return ublk_queue_needs_node(setup->device, &setup->route) ? IO_LOOP_HELD_BY_PROCESS
                                                                   : IO_LOOP_HELD_BY_RING;
}

static int queue_open(struct ublk_queue *queue, const struct ublk_queue_setup *setup)
{
        unsigned stacks = queue->direct ? 0 : setup->depth;
        int r;

        r = io_loop_init(&queue->loop, setup->device, setup->index, setup->depth, stacks, setup->command_fd,
                holder_of(setup));
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
        queue->plain = plain_rules_of(setup->device, &queue->data, setup->max_io_size);
        queue->plain_operations = queue->plain.operations;
        r = make_requests(queue);
        return r < 0 ? r : start_target(queue);
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
        throttle_open(&queue->throttle, setup->shared->region);
        queue_meter_open(&queue->meter, setup->shared, setup->index);
        queue->direct = (setup->device->target->desc->flags & TARGET_NEVER_WAITS)
                        && setup->route.path == DATA_PATH_COPY;
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
        ublk_port_destroy(&queue->port);
        io_loop_destroy(&queue->loop);
        io_data_destroy(&queue->data);
        if (queue->descriptors)
                (void)munmap((void *)(uintptr_t)queue->descriptors, queue->descriptors_size);
        free(queue->requests);
        free(queue->waiting.tags);
        free(queue);
        return NULL;
}
