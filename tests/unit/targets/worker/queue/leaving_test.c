/* SPDX-License-Identifier: MIT */
/* A queue that is called to leave: it answers what it has begun, begins nothing that arrives or is held back, and reports
 * that it has left when the driver has its answers. */
#include "targets/worker/io/await.h"
#include "tests/unit/targets/worker/queue/queue_world.h"

#include <sys/eventfd.h>

enum {
        DEPTH = 8,
        BLOCK = 4096,
        PAUSE = 5000, /* microseconds: an operation of the ring ends sooner */
        COMMIT = DEPTH,
};

/* Each is the tag of a request. */
enum { CALLING, HELD, ARRIVING, LATE };

static struct leave_call call = {.fd = -1, .news = -1};
static unsigned performed, answered, settled_at, rounds_after;
static bool (*really_settled)(const struct ublk_port *port);

static void limit_writes(void)
{
        static const struct region_limits limits[_REGION_DIRECTION_MAX] = {
                [REGION_WRITE] = {.per_second = {[REGION_BUCKET_REQUESTS] = 1},
                                  .burst = {[REGION_BUCKET_REQUESTS] = 1}}
        };

        throttle_set(&queue->throttle, limits, 1, BLOCK);
}

/* The call comes in the middle of the first request; one request is held back then, and one arrives afterwards. */
static int perform(struct target_io *io)
{
        performed |= 1U << io->tag;
        if (io->tag != CALLING)
                return (int)io->length;
        world_put_command(HELD);
        await_pause(&queue->loop, PAUSE);
        CHECK_INT(*queue->throttle.held, 1);
        leave_call_send(&call, 1);
        await_pause(&queue->loop, PAUSE);
        CHECK(queue->leave.wanted);
        world_put_command(ARRIVING);
        await_pause(&queue->loop, PAUSE);
        CHECK_INT(atomic_load(&call.left), 0);
        return (int)io->length;
}

/* ---- the driver ---- */

static unsigned one_arrived(struct ublk_port *port, const struct io_uring_cqe *cqe, const uint16_t **ret_tags)
{
        static uint16_t tag;

        (void)port;
        tag = (uint16_t)user_data_of_command(cqe->user_data);
        *ret_tags = &tag;
        return tag != COMMIT;
}

static bool note_answer(struct ublk_port *port, uint16_t tag, int result)
{
        (void)port;
        CHECK_INT(result, BLOCK);
        answered |= 1U << tag;
        world_put_command(COMMIT);
        return true;
}

/* Nothing else would wake a queue that has left. */
static bool is_settled(const struct ublk_port *port)
{
        bool is = really_settled(port);

        if (!is)
                return false;
        CHECK_INT(io_uring_sq_ready(&queue->loop.ring), 0);
        settled_at += answered != 0;
        world_put_command(LATE);
        return true;
}

static bool is_finished(const struct ublk_port *port)
{
        (void)port;
        return atomic_load(&call.left) > 0 && rounds_after++ > 1;
}

int main(void)
{
        static const struct target_desc desc = {.flags = 0};
        static const struct target target = {.desc = &desc, .read = perform, .write = perform};
        struct target_device device = {.target = &target, .size = DEPTH * BLOCK, .queue_depth = DEPTH};
        int news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        eventfd_t count = 0;

        CHECK_INT(leave_call_open(&call, news), 0);
        world_leave = &call;
        if (!world_open(&device, BLOCK, false))
                return check_report();
        really_settled = driver.settled;
        driver.completed = one_arrived;
        driver.commit = note_answer;
        driver.settled = is_settled;
        driver.finished = is_finished;
        world_describe_all(UBLK_IO_OP_READ, BLOCK); /* nothing holds back what arrives after the call */
        world_describe(CALLING, UBLK_IO_OP_WRITE, 0, BLOCK);
        world_describe(HELD, UBLK_IO_OP_WRITE, 0, BLOCK);
        limit_writes();
        world_put_command(CALLING);
        CHECK_INT(ublk_queue_run(queue), 0);
        CHECK_INT(performed, 1 << CALLING);
        CHECK_INT(answered, 1 << CALLING);
        CHECK(settled_at > 0);
        CHECK_INT(atomic_load(&call.left), 1); /* once */
        CHECK_INT(eventfd_read(news, &count), 0);
        CHECK_INT(count, 1);
        world_close();
        leave_call_close(&call);
        close(news);
        return check_report();
}
