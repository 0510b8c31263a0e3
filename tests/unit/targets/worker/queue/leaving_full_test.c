/* SPDX-License-Identifier: MIT */
/* A queue that has left with a write that waits for room: the process may end at any moment, so it does not begin the write
 * again. If onFull becomes "error", the client gets that. */
#include "targets/worker/io/await.h"
#include "tests/unit/targets/worker/queue/queue_world.h"

#include <sys/eventfd.h>

enum {
        DEPTH = 2,
        BLOCK = 4096,
        TAG = 0,
        COMMIT = DEPTH,
};

static struct leave_call call = {.fd = -1, .news = -1};
static unsigned performed, answered;
static int result_of_answer;

/* The store is full, and has room as soon as the queue has left. */
static int perform(struct target_io *io)
{
        performed++;
        if (atomic_load(&call.left) > 0)
                return (int)io->length;
        leave_call_send(&call, 1);
        return -ENOSPC;
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
        CHECK_INT(tag, TAG);
        answered++;
        result_of_answer = result;
        world_put_command(COMMIT);
        return true;
}

/* Once the queue has left, the supervisor changes onFull. */
static bool is_finished(const struct ublk_port *port)
{
        (void)port;
        if (atomic_load(&call.left) > 0 && queue->room.resting > 0)
                queue->room.space->on_full = REGION_ON_FULL_ERROR;
        return answered > 0;
}

int main(void)
{
        static const struct target_desc desc = {.flags = 0};
        static const struct target target = {.desc = &desc, .read = perform, .write = perform};
        struct target_device device = {.target = &target, .size = DEPTH * BLOCK, .queue_depth = DEPTH};
        int news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

        CHECK_INT(leave_call_open(&call, news), 0);
        world_leave = &call;
        if (!world_open(&device, BLOCK, false))
                return check_report();
        driver.completed = one_arrived;
        driver.commit = note_answer;
        driver.finished = is_finished;
        world_describe(TAG, UBLK_IO_OP_WRITE, 0, BLOCK);
        queue->room.space->on_full = REGION_ON_FULL_WAIT;
        world_put_command(TAG);
        CHECK_INT(ublk_queue_run(queue), 0);
        CHECK_INT(performed, 1);
        CHECK_INT(answered, 1);
        CHECK_INT(result_of_answer, -ENOSPC);
        CHECK_INT(queue->room.space->waiting, 0);
        world_close();
        leave_call_close(&call);
        close(news);
        return check_report();
}
