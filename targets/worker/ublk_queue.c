/* One hardware queue: fetches its requests, has them performed, commits the answers.
 *
 * The fence. /dev/ublkcN is fixed file 0 of the ring, and there is no other reference to it but the mapping
 * of the descriptors. The backend's files are fixed files of the same ring. So when this process dies, the
 * device is let go of only when the ring is freed, and that is after the last request of the ring has
 * finished: as long as a write of ours is on its way to the backing store, START_USER_RECOVERY says EBUSY and
 * there is no successor whose newer data it could overwrite. -DUBLKD_TEST_WITHOUT_FENCE builds the same
 * program without it, for the test that shows the difference.
 *
 * The life of a tag: FETCH, then (request arrives, performed, COMMIT_AND_FETCH) over and over, until a
 * command comes back as aborted: the driver has taken the tag back. Every request that arrives is committed
 * exactly once, because a callback returns exactly once. */
#include "targets/worker/ublk_queue.h"
#include "targets/worker/io_data.h"
#include "targets/worker/io_loop.h"
#include "targets/worker/perform.h"
#include "targets/worker/queue_control.h"
#include "targets/worker/queue_meter.h"
#include "targets/worker/throttle.h"
#include "ublkd/base/ublk_uapi.h"

#include <string.h>
#include <sys/mman.h>

enum { SECTOR_SHIFT = 9 };

/* One per tag. */
struct request {
        struct target_io io;
        struct request_meter meter;
        struct throttled throttled;
        int result; /* while the answer waits for a submission entry */
};

/* Tags in the order of arrival; never more than there are. */
struct tag_queue {
        uint16_t *tags;
        unsigned size, first, count;
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
        struct tag_queue unsent;    /* answered, but there was no submission entry for the commit */
        struct tag_queue waiting;   /* arrived, but there was no stack to run them on */
        unsigned depth, taken_back; /* tags; those that the driver has aborted */
        int command_fd;
        int failure; /* -errno of a command that the driver did not take, or 0 */
        bool never_waits, target_started;
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

static int tag_queue_init(struct tag_queue *queue, unsigned size)
{
        *queue = (struct tag_queue){.tags = calloc(size, sizeof(*queue->tags)), .size = size};
        return queue->tags ? 0 : -ENOMEM;
}

static void tag_queue_put(struct tag_queue *queue, uint16_t tag)
{
        assert(queue->count < queue->size);
        queue->tags[(queue->first + queue->count++) % queue->size] = tag;
}

static uint16_t tag_queue_first(const struct tag_queue *queue)
{
        assert(queue->count > 0);
        return queue->tags[queue->first];
}

static void tag_queue_drop_first(struct tag_queue *queue)
{
        queue->first = (queue->first + 1) % queue->size;
        queue->count--;
}

/* ---- commands to the driver ---- */

/* False: no submission entry is free in this round. */
static bool send_command(struct ublk_queue *queue, uint32_t operation, uint16_t tag, int result)
{
        const struct ublksrv_io_cmd command = {
                .q_id = (uint16_t)queue->loop.queue.index,
                .tag = tag,
                .result = result,
                .addr = (uintptr_t)io_data_of(&queue->data, tag),
        };
        struct io_uring_sqe *sqe = io_loop_sqe(&queue->loop);

        if (__builtin_expect(!sqe, 0))
                return false;
#ifdef UBLKD_TEST_WITHOUT_FENCE
        io_uring_prep_rw(IORING_OP_URING_CMD, sqe, queue->command_fd, NULL, 0, 0);
#else
        io_uring_prep_rw(IORING_OP_URING_CMD, sqe, IO_LOOP_COMMAND_FILE, NULL, 0, 0);
        sqe->flags = IOSQE_FIXED_FILE;
#endif
        sqe->cmd_op = operation;
        memcpy(&sqe->addr3, &command, sizeof(command)); /* sqe->cmd, which older headers declare empty */
        io_uring_sqe_set_data64(sqe, user_data_command(tag));
        return true;
}
_Static_assert(
        offsetof(struct io_uring_sqe, addr3) + sizeof(struct ublksrv_io_cmd) == sizeof(struct io_uring_sqe),
        "an I/O command fits a 64-byte entry");

static void commit(struct ublk_queue *queue, struct request *request, int result)
{
        queue_meter_ended(&queue->meter, &request->meter, request->io.length, result);
        if (__builtin_expect(send_command(queue, UBLK_U_IO_COMMIT_AND_FETCH_REQ, request->io.tag, result), 1))
                return;
        request->result = result;
        tag_queue_put(&queue->unsent, request->io.tag);
}

static void commit_unsent(struct ublk_queue *queue)
{
        while (queue->unsent.count > 0) {
                uint16_t tag = tag_queue_first(&queue->unsent);

                if (!send_command(queue, UBLK_U_IO_COMMIT_AND_FETCH_REQ, tag, queue->requests[tag].result))
                        return;
                tag_queue_drop_first(&queue->unsent);
        }
}

/* ---- requests from the driver ---- */

/* Reads the driver's descriptor. What is beyond this program's means gets an operation that nobody has. */
static void describe(const struct ublk_queue *queue, struct request *request)
{
        const struct ublksrv_io_desc *descriptor = &queue->descriptors[request->io.tag];
        uint32_t op_flags = descriptor->op_flags, op = op_flags & 0xff;
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
                io->data = io_data_of(&queue->data, io->tag);
                if (length > queue->data.stride)
                        io->op = _IO_OP_MAX;
        }
}

/* The body of a request's coroutine. */
static void request_co(void *argument)
{
        struct request *request = argument;
        struct io_loop *loop = io_loop_of(request->io.queue);

        commit((struct ublk_queue *)loop, request, perform_co(&request->io));
}
_Static_assert(offsetof(struct ublk_queue, loop) == 0, "a queue's loop leads back to the queue");

/* False: not now, other requests must end first. */
static bool start(struct ublk_queue *queue, struct request *request)
{
        int r = co_start(&queue->loop.coroutines, request_co, request);

        if (__builtin_expect(r < 0, 0)) {
                if (queue->loop.coroutines.busy > 0)
                        return false;
                commit(queue, request, r);
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

static void begin(struct ublk_queue *queue, struct request *request)
{
        if (queue->never_waits)
                commit(queue, request, perform_co(&request->io));
        else if (queue->waiting.count > 0 || !start(queue, request))
                tag_queue_put(&queue->waiting, request->io.tag);
}

static void request_arrived(struct ublk_queue *queue, uint16_t tag)
{
        struct request *request = &queue->requests[tag];

        if (__builtin_expect(!atomic_load_explicit(queue->served, memory_order_relaxed), 0))
                atomic_store_explicit(queue->served, true, memory_order_relaxed);
        describe(queue, request);
        queue_meter_arrived(&queue->meter, &request->meter, request->io.op);
        if (__builtin_expect(queue->throttle.limited, 0)
                && throttle_hold(&queue->throttle, &request->throttled, request->io.op, request->io.length))
                return;
        begin(queue, request);
}

static void command_completed(struct ublk_queue *queue, uint16_t tag, int result)
{
        if (__builtin_expect(result == UBLK_IO_RES_OK, 1))
                request_arrived(queue, tag);
        else if (result == UBLK_IO_RES_ABORT)
                queue->taken_back++;
        else
                queue->failure = result < 0 ? result : -EPROTO;
}

static void take_completions(struct ublk_queue *queue)
{
        struct io_uring_cqe *cqe;
        unsigned head, count = 0;

        io_uring_for_each_cqe(&queue->loop.ring, head, cqe)
        {
                switch (user_data_kind(cqe->user_data)) {
                case USER_DATA_AWAIT:
                        io_loop_wake(&queue->loop, cqe->user_data, cqe->res);
                        break;
                case USER_DATA_COMMAND:
                        command_completed(queue, user_data_tag(cqe->user_data), cqe->res);
                        break;
                case USER_DATA_IGNORED:
                case _USER_DATA_KIND_MAX:
                        break;
                }
                count++;
        }
        io_uring_cq_advance(&queue->loop.ring, count);
}

int ublk_queue_fetch(struct ublk_queue *queue)
{
        struct io_uring_cqe *cqe;
        unsigned head;
        int r;

        for (unsigned tag = 0; tag < queue->depth; tag++)
                if (!send_command(queue, UBLK_U_IO_FETCH_REQ, (uint16_t)tag, 0))
                        return -EBUSY;
        while (io_uring_sq_ready(&queue->loop.ring) > 0) {
                r = io_uring_submit(&queue->loop.ring);
                if (r < 0 && r != -EINTR && r != -EAGAIN)
                        return r;
        }
        /* A FETCH that is refused is back already. Others are left for ublk_queue_run(). */
        io_uring_for_each_cqe(&queue->loop.ring, head, cqe)
        {
                if (cqe->res < 0)
                        return cqe->res;
        }
        return 0;
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
                begin(queue, (struct request *)((char *)throttled - offsetof(struct request, throttled)));
}

/* Sends what there is, and waits for something to do. */
static int submit(struct ublk_queue *queue)
{
        bool wait = queue->unsent.count == 0;

        if (__builtin_expect(!wait || (queue->busy_poll == 0 && !queue->throttle.limited), 1))
                return io_loop_submit(&queue->loop, wait);
        return io_loop_submit_for(&queue->loop, queue->busy_poll, throttle_wait(&queue->throttle));
}

int ublk_queue_run(struct ublk_queue *queue)
{
        while (queue->taken_back < queue->depth) {
                int r = submit(queue);

                if (r < 0)
                        return r;
                queue_meter_round(&queue->meter);
                follow_control(queue);
                begin_throttled(queue);
                commit_unsent(queue);
                take_completions(queue);
                io_loop_run_ready(&queue->loop);
                start_waiting(queue);
                if (__builtin_expect(queue->failure < 0, 0))
                        return queue->failure;
        }
        return 0;
}

/* ---- opening and closing ---- */

/* The driver lays the queues' descriptors out as if each had the greatest depth. */
static int map_descriptors(struct ublk_queue *queue)
{
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        size_t size = (queue->depth * sizeof(struct ublksrv_io_desc) + page - 1) / page * page;
        size_t stride = (UBLK_MAX_QUEUE_DEPTH * sizeof(struct ublksrv_io_desc) + page - 1) / page * page;
        void *descriptors = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_POPULATE, queue->command_fd,
                (off_t)(UBLKSRV_CMD_BUF_OFFSET + queue->loop.queue.index * stride));

        if (descriptors == MAP_FAILED)
                return -errno;
        queue->descriptors = descriptors;
        queue->descriptors_size = size;
        return 0;
}

static int make_requests(struct ublk_queue *queue)
{
        int r;

        queue->requests = calloc(queue->depth, sizeof(*queue->requests));
        if (!queue->requests)
                return -ENOMEM;
        for (unsigned tag = 0; tag < queue->depth; tag++)
                queue->requests[tag].io =
                        (struct target_io){.queue = &queue->loop.queue, .tag = (uint16_t)tag};
        r = tag_queue_init(&queue->unsent, queue->depth);
        return r < 0 ? r : tag_queue_init(&queue->waiting, queue->depth);
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

/* What the ring holds until its last request has finished. */
static int fence_of(const struct ublk_queue_setup *setup)
{
#ifdef UBLKD_TEST_WITHOUT_FENCE
        (void)setup;
        return -1;
#else
        return setup->command_fd;
#endif
}

static int queue_open(struct ublk_queue *queue, const struct ublk_queue_setup *setup)
{
        unsigned stacks = queue->never_waits ? 0 : setup->depth;
        int r;

        r = io_loop_init(&queue->loop, setup->device, setup->index, setup->depth, stacks, fence_of(setup));
        if (r < 0)
                return r;
        if (setup->cpus) /* else its kernel threads would run anywhere; kernels that cannot do without */
                (void)io_uring_register_iowq_aff(&queue->loop.ring, sizeof(*setup->cpus), setup->cpus);
        r = map_descriptors(queue);
        if (r < 0)
                return r;
        r = io_data_init(&queue->data, setup->depth, setup->max_io_size);
        if (r < 0)
                return r;
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
        queue->command_fd = setup->command_fd;
        queue->served = setup->served;
        queue->control.region = setup->shared->region;
        throttle_open(&queue->throttle, setup->shared->region);
        queue_meter_open(&queue->meter, setup->shared, setup->index);
        queue->never_waits = setup->device->target->desc->flags & TARGET_NEVER_WAITS;
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
        io_loop_destroy(&queue->loop);
        io_data_destroy(&queue->data);
        if (queue->descriptors)
                (void)munmap((void *)(uintptr_t)queue->descriptors, queue->descriptors_size);
        free(queue->requests);
        free(queue->unsent.tags);
        free(queue->waiting.tags);
        free(queue);
        return NULL;
}
