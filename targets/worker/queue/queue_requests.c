/* SPDX-License-Identifier: MIT */
/* A queue's requests, from arrival to answer.
 *
 * Every request that arrives is committed exactly once, because a callback returns exactly once. */
#include "targets/worker/queue/queue_requests.h"
#include "targets/worker/queue/perform.h"
#include "targets/worker/queue/shared_error.h"

#include <string.h>

/* Compiled for each common profile, so that the compiler drops checks that are constant for a profile. */
#define _profiled_ __attribute__((always_inline)) inline

static const enum io_op operations[] = {
        [UBLK_IO_OP_READ] = IO_READ,
        [UBLK_IO_OP_WRITE] = IO_WRITE,
        [UBLK_IO_OP_FLUSH] = IO_FLUSH,
        [UBLK_IO_OP_DISCARD] = IO_DISCARD,
        [UBLK_IO_OP_WRITE_SAME] = _IO_OP_MAX,
        [UBLK_IO_OP_WRITE_ZEROES] = IO_WRITE_ZEROES,
};

/* ---- requests from the driver ---- */

/* Read the driver's descriptor. An operation that this program does not know becomes one that no target has. */
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
        if (io->op
                == IO_FLUSH) { /* a flush has no range: the driver passes on what the block layer left there */
                io->offset = 0;
                io->length = 0;
                return;
        }
        if (length > UINT32_MAX || descriptor->start_sector > UINT64_MAX >> SECTOR_SHIFT)
                io->op = _IO_OP_MAX;
        if (io->op == IO_READ || io->op == IO_WRITE) {
                io->data = request->data.address;
                request->registered = queue->data.route.auto_buffers && !(op_flags & UBLK_IO_F_NEED_REG_BUF);
                if (io->data && length > queue->data.stride)
                        io->op = _IO_OP_MAX;
                else
                        io_data_take(&queue->data, io->tag, io->length);
        }
}

/* The result for the driver: the full length, or an error. Linux 7.3 takes less than the length for the whole.
 * A read that failed may have met the end of a store that was cut off. */
static int verdict(struct ublk_queue *queue, const struct request *request, int result)
{
        result = perform_answer(&request->io, result);
        if (result == -EIO && request->io.op == IO_READ)
                (void)store_end_look(&queue->store_end);
        return result >= 0 && !store_end_holds(&queue->store_end) ? -EIO : result;
}

/* This or answer_moved() answers each request. */
static void answer(struct ublk_queue *queue, struct request *request, int result)
{
        io_data_return(&queue->data, request->io.tag);
        ublk_port_commit(&queue->port, request->io.tag, result);
}

/* A plain request whose bytes are all moved. */
_profiled_ static void answer_moved(
        struct ublk_queue *queue, struct request *request, const struct queue_profile *profile)
{
        if (profile->copies)
                io_data_return_memory(&queue->data, request->io.tag);
        if (profile->batched)
                ublk_port_commit_in_batch(
                        &queue->port, &request->success, profile->copies, request->data.address);
        else
                ublk_port_commit(&queue->port, request->io.tag, request->success.result);
}

/* Not inlined: most requests do not need it, and must not pay for it. */
__attribute__((noinline)) static void note_error(
        const struct ublk_queue *queue, const struct request *request, int result)
{
        shared_error_note(queue->room.shared, &request->io, -result);
}

/* Of a request that has been described. */
static void request_ends(struct ublk_queue *queue, struct request *request, int result)
{
        result = verdict(queue, request, result);
        if (__builtin_expect(result < 0, 0))
                note_error(queue, request, result);
        queue_meter_ended(&queue->meter, &request->meter, request->io.length, result);
        answer(queue, request, result);
}

/* Whether nothing but its target stands between the request and its bytes. */
static inline bool data_is_ready(const struct ublk_queue *queue, const struct request *request)
{
        return !queue->data.moves || request->registered;
}

/* Perform a request whose data is moved or registered before or after it. A function of its own: its locals must not
 * cost other requests anything. */
__attribute__((noinline)) static int perform_moving_co(struct ublk_queue *queue, struct request *request)
{
        int r;

        if (io_data_falls_back(&queue->data, &request->io, request->registered))
                queue_meter_unregistered(&queue->meter);
        r = io_data_begin_co(&queue->data, &request->io, request->registered);
        if (r < 0)
                return r;
        return io_data_end_co(&queue->data, &request->io, request->registered,
                perform_co(&request->io, &queue->durability));
}

static int perform_any_co(struct ublk_queue *queue, struct request *request)
{
        if (!data_is_ready(queue, request))
                return perform_moving_co(queue, request);
        return perform_co(&request->io, &queue->durability);
}

/* Of a write that found no room. A store that was cut off is not full. The block layer does not know EDQUOT,
 * and its clients would get EIO (errno_to_blk_status()). */
__attribute__((noinline)) static int perform_waiting_co(
        struct ublk_queue *queue, struct request *request, int result)
{
        unsigned tries = 0;

        while (room_is_missing(request->io.op, result)) {
                if (!store_end_look(&queue->store_end)) {
                        result = -EIO;
                        break;
                }
                if (!room_wait_co(&queue->room, &queue->loop, &request->io, -result, tries))
                        break;
                tries++;
                result = perform_any_co(queue, request);
        }
        room_ended(&queue->room, request->io.op, tries, result);
        return room_is_missing(request->io.op, result) ? -ENOSPC : result;
}

/* The body of a request's coroutine. */
static void request_co(void *argument)
{
        struct request *request = argument;
        struct ublk_queue *queue = (struct ublk_queue *)io_loop_of(request->io.queue);

        int result = queue->store_end.holds ? perform_any_co(queue, request) : -EIO;

        if (__builtin_expect(room_is_missing(request->io.op, result) || queue->room.full, 0))
                result = perform_waiting_co(queue, request, result);
        request_ends(queue, request, result);
}
_Static_assert(offsetof(struct ublk_queue, loop) == 0, "a queue's loop leads back to the queue");

/* False: not now, other requests must end first. */
static bool start(struct ublk_queue *queue, struct request *request)
{
        int r = co_start(&queue->loop.coroutines, request_co, request);

        if (__builtin_expect(r < 0, 0)) {
                if (queue->loop.coroutines.busy > queue->loop.residents)
                        return false;
                request_ends(queue, request, r);
        }
        return true;
}

void queue_requests_begin_waiting(struct ublk_queue *queue)
{
        while (queue->waiting.count > 0) {
                if (!start(queue, &queue->requests[tag_queue_first(&queue->waiting)]))
                        return;
                tag_queue_drop_first(&queue->waiting);
                /* A round waits for completions next: coroutines that this request has woken must run before. */
                io_loop_run_ready(&queue->loop);
        }
}

static void begin_on_coroutine(struct ublk_queue *queue, struct request *request)
{
        if (queue->waiting.count > 0 || !start(queue, request))
                tag_queue_put(&queue->waiting, request->io.tag);
}

void queue_requests_begin(struct ublk_queue *queue, struct request *request)
{
        if (queue->profile.direct)
                request_ends(queue, request, perform_co(&request->io, &queue->durability));
        else
                begin_on_coroutine(queue, request);
}

/* Not inlined: most requests do not need it, and must not pay for it. */
__attribute__((noinline)) static void any_arrived(struct ublk_queue *queue, struct request *request)
{
        describe(queue, request);
        queue_meter_arrived(&queue->meter, &request->meter, request->io.op);
        if (queue->throttle.limited
                && throttle_hold(&queue->throttle, &request->throttled, request->io.op, request->io.length))
                return;
        queue_requests_begin(queue, request);
}

/* ---- plain requests: compiled for each common profile ---- */

/* A plain request comes in. */
_profiled_ static void plain_taken(struct ublk_queue *queue, struct request *request,
        const struct ublksrv_io_desc *descriptor, const struct queue_profile *profile)
{
        request->success.result = (int)plain_length(descriptor);
        if (profile->copies)
                io_data_take_memory(&queue->data, request->io.tag, plain_length(descriptor));
}

/* Answer a plain request that a target without waits has not performed. Not inlined: most requests do not need it, and
 * must not pay for it. */
__attribute__((noinline)) static void plain_not_performed(
        struct ublk_queue *queue, struct request *request, int result)
{
        queue_meter_arrived(&queue->meter, &request->meter, request->io.op);
        request_ends(queue, request, perform_answer(&request->io, result));
}

/* Perform a plain request of a target that never waits, from its arrival to its end. The checks of perform_co() have
 * been made, so it is not called. */
_profiled_ static void plain_performed(struct ublk_queue *queue, struct request *request,
        const struct ublksrv_io_desc *descriptor, const struct queue_profile *profile)
{
        enum io_op op = plain_op(descriptor);
        uint32_t length = plain_length(descriptor);
        int result;

        plain_describe(&request->io, descriptor, request->data.address);
        plain_taken(queue, request, descriptor, profile);
        result = queue->plain.callbacks[op](&request->io);
        if (__builtin_expect(result == (int)length, 1)) {
                queue_meter_at_once(&queue->meter, op, length);
                answer_moved(queue, request, profile);
        } else {
                plain_not_performed(queue, request, result);
        }
}

/* Of a linear disk: its completion is plain_moved(). False: there was no room for its operation. */
_profiled_ static bool plain_begun(struct ublk_queue *queue, struct request *request,
        const struct ublksrv_io_desc *descriptor, const struct queue_profile *profile)
{
        if (!plain_move(&queue->plain, &queue->loop, descriptor, &request->data, user_data_plain(request)))
                return false;
        plain_taken(queue, request, descriptor, profile);
        queue_meter_arrived(&queue->meter, &request->meter, plain_op(descriptor));
        return true;
}

/* Begin a plain request of a tree of maps, if one file has all its bytes. Not inlined, as above. */
__attribute__((noinline)) static bool plain_mapped(struct ublk_queue *queue, struct request *request)
{
        const struct ublksrv_io_desc *descriptor = request->descriptor;

        if (!plain_move_mapped(
                    &queue->plain, &queue->loop, descriptor, &request->data, user_data_plain(request)))
                return false;
        plain_taken(queue, request, descriptor, &queue->profile);
        queue_meter_arrived(&queue->meter, &request->meter, plain_op(descriptor));
        return true;
}

/* It was not moved, or not to its end: see plain.h. Not inlined, as above. */
__attribute__((noinline)) static void plain_not_moved(
        struct ublk_queue *queue, struct request *request, int result)
{
        describe(queue, request);
        if (plain_has_failed(result))
                request_ends(queue, request, result);
        else
                begin_on_coroutine(queue, request);
}

/* The operation of such a request is done. `now`: when, or the round's time. */
_profiled_ static void plain_moved(struct ublk_queue *queue, struct request *request, int result,
        uint64_t now, const struct queue_profile *profile)
{
        if (__builtin_expect(result == request->success.result && store_end_holds(&queue->store_end), 1)) {
                queue_meter_succeeded(&queue->meter, &request->meter, (uint32_t)result, now);
                answer_moved(queue, request, profile);
        } else {
                plain_not_moved(queue, request, result);
        }
}

/* Of a linear disk in memory. It is answered by answer_moved_inline(). Not inlined, as above. */
__attribute__((noinline)) static void plain_moved_inline(struct ublk_queue *queue, struct request *request)
{
        const struct ublksrv_io_desc *descriptor = request->descriptor;

        plain_taken(queue, request, descriptor, &queue->profile);
        queue_meter_arrived(&queue->meter, &request->meter, plain_op(descriptor));
        queue->moved[queue->moved_count++] = (struct moved_inline){
                .tag = request->io.tag,
                .result = plain_transfer_inline(&queue->plain, descriptor, request->data.address),
        };
}

/* Answer the requests of a round after the last one was moved, so that one check of the end of the store covers them
 * all. Not inlined, as above. */
__attribute__((noinline)) static void answer_moved_inline(struct ublk_queue *queue)
{
        uint64_t now = queue_meter_look(&queue->meter);

        store_end_round(&queue->store_end);
        for (unsigned i = 0; i < queue->moved_count; i++)
                plain_moved(queue, &queue->requests[queue->moved[i].tag], queue->moved[i].result, now,
                        &queue->profile);
        queue->moved_count = 0;
}

/* ---- completions ---- */

/* Take a request: the only place where requests enter. */
_profiled_ static void request_arrived(
        struct ublk_queue *queue, uint16_t tag, uint64_t disk_sectors, const struct queue_profile *profile)
{
        struct request *request = &queue->requests[tag];
        const struct ublksrv_io_desc descriptor = *request->descriptor;

        if (__builtin_expect(plain_is(&queue->plain, &descriptor, disk_sectors), 1)) {
                if (profile->inline_transfer && plain_is_inline(&queue->plain, &descriptor)) {
                        plain_moved_inline(queue, request);
                        return;
                }
                if (profile->linear && plain_begun(queue, request, &descriptor, profile))
                        return;
                if (profile->direct) {
                        plain_performed(queue, request, &descriptor, profile);
                        return;
                }
                if (profile->mapped && plain_mapped(queue, request))
                        return;
        }
        any_arrived(queue, request);
}

_profiled_ static void each_arrived(struct ublk_queue *queue, const uint16_t *tags, unsigned count,
        uint64_t disk_sectors, const struct queue_profile *profile)
{
        for (unsigned i = 0; i < count; i++) {
                if (__builtin_expect(tags[i] >= queue->depth, 0)) {
                        queue->port.failure = -EPROTO;
                        return;
                }
                request_arrived(queue, tags[i], disk_sectors, profile);
        }
}

/* Send commits and operations in the middle of a round. */
static void send_early(struct ublk_queue *queue)
{
        int r;

        if (queue->moved_count > 0)
                answer_moved_inline(queue);
        if (queue->port.class->send)
                queue->port.class->send(&queue->port);
        r = io_loop_submit(&queue->loop, false);
        if (r < 0)
                queue->port.failure = r;
}

/* The first requests of a queue may have waited since the last worker died, and all arrive at once. Send their results
 * in parts, each twice as long as the part before: the first answer does not wait for the last request. The driver has
 * its list back after the first part. Not inlined, as above. */
__attribute__((noinline)) static void first_arrived(
        struct ublk_queue *queue, const uint16_t *list, unsigned count, uint64_t disk_sectors)
{
        uint16_t tags[UBLK_PORT_LIST_MAX];

        if (count > ARRAY_SIZE(tags)) {
                queue->port.failure = -EPROTO;
                return;
        }
        memcpy(tags, list, count * sizeof(*tags));
        for (unsigned first = 0, end = 1; first < count && queue->port.failure == 0; first = end, end *= 2) {
                unsigned until = end < count ? end : count;

                each_arrived(queue, tags + first, until - first, disk_sectors, &queue->profile);
                send_early(queue);
        }
        queue->begun = true;
        atomic_store_explicit(queue->served, true, memory_order_relaxed);
}

_profiled_ static void command_completed(
        struct ublk_queue *queue, const struct io_uring_cqe *cqe, const struct queue_profile *profile)
{
        const uint16_t *tags = NULL;
        unsigned count = queue->port.class->completed(&queue->port, cqe, &tags);
        uint64_t disk_sectors = plain_disk_sectors(&queue->plain);

        if (__builtin_expect(!queue->begun && count > 0, 0))
                first_arrived(queue, tags, count, disk_sectors);
        else
                each_arrived(queue, tags, count, disk_sectors, profile);
}

/* Not inlined: no request needs it, and none must pay for it. */
__attribute__((noinline)) static void called_to_leave(struct ublk_queue *queue, int result)
{
        queue_leave_called(&queue->leave, &queue->loop, result);
        queue->watched = false; /* the round looks at queue->leave then */
}

_profiled_ static void take_completion(
        struct ublk_queue *queue, const struct io_uring_cqe *cqe, const struct queue_profile *profile)
{
        switch (user_data_kind(cqe->user_data)) {
        case USER_DATA_AWAIT:
                io_loop_wake(&queue->loop, cqe->user_data, cqe->res);
                break;
        case USER_DATA_COMMAND:
                command_completed(queue, cqe, profile);
                break;
        case USER_DATA_TICK:
                if (cqe->user_data == USER_DATA_NUDGE) {
                        io_loop_nudged(&queue->loop);
                        break;
                }
                if (cqe->user_data == USER_DATA_LEAVE) {
                        called_to_leave(queue, cqe->res);
                        break;
                }
                queue->ticking = false;
                queue->watched = queue->profile.direct;
                queue->look_due = true;
                queue->ticked = true;
                break;
        case USER_DATA_PLAIN:
                plain_moved(queue, user_data_of_plain(cqe->user_data), cqe->res, queue->meter.now, profile);
                break;
        case _USER_DATA_KIND_MAX:
                break;
        }
}

/* Take the completions that were there at the start: with later ones it might never end. */
_profiled_ static void take_each(struct ublk_queue *queue, const struct queue_profile *profile)
{
        struct io_uring_cq *cq = &queue->loop.ring.cq;
        unsigned head = *cq->khead, tail = io_uring_smp_load_acquire(cq->ktail);

        for (; head != tail; head++)
                take_completion(queue, &cq->cqes[head & cq->ring_mask], profile);
        io_uring_smp_store_release(cq->khead, head);
        if (profile->inline_transfer && queue->moved_count > 0)
                answer_moved_inline(queue);
}

/* ---- leaving ---- */

/* What arrives stays where it is: the driver counts it as ours, and hands it to the next worker when this one is gone. */
static void take_without_arrivals(struct ublk_queue *queue)
{
        struct io_uring_cq *cq = &queue->loop.ring.cq;
        unsigned head = *cq->khead, tail = io_uring_smp_load_acquire(cq->ktail);

        for (; head != tail; head++) {
                const struct io_uring_cqe *cqe = &cq->cqes[head & cq->ring_mask];
                const uint16_t *tags = NULL;

                if (user_data_kind(cqe->user_data) == USER_DATA_COMMAND)
                        (void)queue->port.class->completed(&queue->port, cqe, &tags);
                else
                        take_completion(queue, cqe, &queue->profile);
        }
        io_uring_smp_store_release(cq->khead, head);
}

void queue_requests_leave(struct ublk_queue *queue)
{
        queue->room.leaves = true;
        queue->throttle.limited = false; /* so none of those that it holds begins */
        queue->take_completions = take_without_arrivals;
}

uint64_t queue_requests_in_hand(const struct ublk_queue *queue)
{
        return queue_meter_under_way(&queue->meter) - *queue->throttle.held - queue->room.resting;
}

/* ---- profiles ---- */

/* What auto makes of a disk, and of null, on kernels with batches. */
static const struct queue_profile profile_of_disks = {.linear = true, .batched = true},
                                  profile_of_null = {.direct = true, .copies = true, .batched = true};

static void take_of_disk(struct ublk_queue *queue)
{
        take_each(queue, &profile_of_disks);
}

static void take_of_null(struct ublk_queue *queue)
{
        take_each(queue, &profile_of_null);
}

static void take_of_any(struct ublk_queue *queue)
{
        take_each(queue, &queue->profile);
}

static const struct {
        const struct queue_profile *profile;
        void (*take)(struct ublk_queue *queue);
} common_profiles[] = {
        {&profile_of_disks, take_of_disk},
        {&profile_of_null,  take_of_null},
};

void queue_requests_choose_profile(struct ublk_queue *queue)
{
        queue->profile.linear = queue->loop.queue.device->linear && !queue->loop.queue.device->by_callbacks;
        queue->profile.mapped = !queue->profile.linear && queue->plain.device->target->locate;
        queue->profile.inline_transfer = queue->plain.inline_sectors > 0;
        queue->profile.copies = queue->port.copies;
        queue->profile.batched = queue->port.batched;
        queue->take_completions = take_of_any;
        for (size_t i = 0; i < ARRAY_SIZE(common_profiles); i++)
                if (memcmp(common_profiles[i].profile, &queue->profile, sizeof(queue->profile)) == 0)
                        queue->take_completions = common_profiles[i].take;
}
