/* SPDX-License-Identifier: MIT */
/* The kernel under ublk_ctl.c. */
#include "tests/unit/ublkd/reconcile/reconciler_fakes.h"

#include "tests/unit/ublkd/reconcile/reconciler_fake_worker.h"

#include <errno.h>
#include <string.h>
#include <sys/queue.h>

struct queued {
        TAILQ_ENTRY(queued) link;
        struct ctl_wish wish;
        struct ctl_call *call;
};
static TAILQ_HEAD(, queued) queue = TAILQ_HEAD_INITIALIZER(queue);

struct fake_disk fake_disks[FAKE_NUMBERS];
struct fake_kernel fake_kernel;

void fake_kernel_begin(void)
{
        memset(fake_disks, 0, sizeof(fake_disks));
        fake_kernel = (struct fake_kernel){.user = "somebody"};
}

/* ---- its commands ---- */

static int get_info(const struct ctl_wish *wish, struct kernel_device *ret)
{
        fake_kernel.looks++;
        if (fake_kernel.get_info_error)
                return fake_kernel.get_info_error;
        if (!fake_disks[wish->number].there)
                return -ENODEV;
        *ret = fake_disks[wish->number].device;
        return 0;
}

static int add(const struct ctl_wish *wish, struct kernel_device *ret)
{
        struct fake_disk *disk = &fake_disks[wish->number];

        fake_kernel.adds++;
        if (fake_kernel.hurried)
                *disk = (struct fake_disk){
                        .there = true, .device = {.number = wish->number, .cookie = FAKE_FOREIGN}
                };
        fake_kernel.hurried = false;
        if (disk->there)
                return -EEXIST;
        if (fake_kernel.releases > 0) {
                fake_kernel.releases--;
                return -EEXIST;
        }
        if (fake_kernel.add_error)
                return fake_kernel.add_error;
        *disk = (struct fake_disk){
                .there = true,
                .device = {.number = wish->number,
                           .cookie = wish->request.cookie,
                           .flags = wish->request.flags & ~fake_kernel.dropped_flags,
                           .queues = wish->request.queues,
                           .queue_depth = wish->request.queue_depth,
                           .max_io_size = wish->request.max_io_size}
        };
        *ret = disk->device;
        return 0;
}

static int do_nothing(const struct ctl_wish *wish _unused_, struct kernel_device *ret _unused_)
{
        return 0;
}

static int get_affinity(const struct ctl_wish *wish _unused_, struct kernel_device *ret)
{
        *ret = (struct kernel_device){.queue_cpus = {1}};
        return 0;
}

static int begin_recovery(const struct ctl_wish *wish _unused_, struct kernel_device *ret _unused_)
{
        return fake_kernel.held ? -EBUSY : 0;
}

static int go_live(const struct ctl_wish *wish, struct kernel_device *ret _unused_)
{
        fake_disks[wish->number].device.state = KERNEL_STATE_LIVE;
        return 0;
}

static struct fake_worker *worker_of(int number)
{
        struct fake_worker *worker;

        TAILQ_FOREACH (worker, &fake_workers, link)
                if (worker->number == number && !worker->dead)
                        return worker;
        return NULL;
}

/* Its worker exits. */
static int stop(const struct ctl_wish *wish, struct kernel_device *ret _unused_)
{
        struct fake_worker *worker = worker_of(wish->number);

        fake_disks[wish->number].device.state = KERNEL_STATE_DEAD;
        if (worker)
                fake_worker_die(worker);
        return 0;
}

static int try_stop(const struct ctl_wish *wish, struct kernel_device *ret)
{
        return fake_disks[wish->number].open ? -EBUSY : stop(wish, ret);
}

static int stop_unheld(const struct ctl_wish *wish, struct kernel_device *ret)
{
        fake_kernel.holds++;
        return fake_kernel.hold_error < 0 ? fake_kernel.hold_error : stop(wish, ret);
}

/* Its worker finishes and exits. */
static int quiesce(const struct ctl_wish *wish, struct kernel_device *ret _unused_)
{
        struct fake_worker *worker = worker_of(wish->number);

        fake_kernel.quiesces++;
        if (!worker)
                return 0;
        worker->crashes = fake_kernel.crashes;
        fake_worker_die(worker);
        return 0;
}

static int update_size(const struct ctl_wish *wish, struct kernel_device *ret _unused_)
{
        fake_disks[wish->number].size = wish->size;
        return 0;
}

/* Fails for a disk that was removed since DEL_DEV was sent. An open disk stays until it is closed. */
static int del(const struct ctl_wish *wish, struct kernel_device *ret _unused_)
{
        struct fake_disk *disk = &fake_disks[wish->number];
        int r = disk->there && !disk->vanishes ? 0 : -ENODEV;

        disk->there = r == 0 && disk->open;
        return r;
}

static int (*const acts[_COMMAND_MAX])(const struct ctl_wish *wish, struct kernel_device *ret) = {
        [COMMAND_GET_INFO] = get_info,
        [COMMAND_GET_AFFINITY] = get_affinity,
        [COMMAND_ADD] = add,
        [COMMAND_SET_PARAMS] = do_nothing,
        [COMMAND_START] = go_live,
        [COMMAND_BEGIN_RECOVERY] = begin_recovery,
        [COMMAND_END_RECOVERY] = go_live,
        [COMMAND_STOP] = stop,
        [COMMAND_TRY_STOP] = try_stop,
        [COMMAND_STOP_UNHELD] = stop_unheld,
        [COMMAND_QUIESCE] = quiesce,
        [COMMAND_UPDATE_SIZE] = update_size,
        [COMMAND_DEL] = del,
};

/* ---- when ---- */

int on_ctl_submitted(const struct ctl_wish *wish, struct ctl_call *call)
{
        struct queued *queued = malloc(sizeof(*queued));

        if (!queued)
                abort();
        *queued = (struct queued){.wish = *wish, .call = call};
        TAILQ_INSERT_TAIL(&queue, queued, link);
        return 0;
}

static void forget(struct queued *queued)
{
        TAILQ_REMOVE(&queue, queued, link);
        free(queued);
}

void on_ctl_cancelled(struct ctl_call *call)
{
        struct queued *queued = TAILQ_FIRST(&queue);

        while (queued->call != call)
                queued = TAILQ_NEXT(queued, link);
        forget(queued);
}

bool fake_ctl_answer(void)
{
        struct queued *queued = TAILQ_FIRST(&queue);
        struct ctl_call *call;
        struct ctl_wish wish;
        struct kernel_device device = {};
        int r;

        if (!queued)
                return false;
        call = queued->call;
        wish = queued->wish;
        forget(queued);
        r = acts[wish.type](&wish, &device);
        ctl_stand_in_answers(call, r, r < 0 ? NULL : &device);
        return true;
}
