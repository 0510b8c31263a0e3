/* SPDX-License-Identifier: MIT */
/* The kernel under ublk_ctl.c. */
#include "tests/unit/ublkd/reconcile/reconciler_fakes.h"

#include "tests/unit/ublkd/reconcile/reconciler_fake_worker.h"

#include <errno.h>
#include <sys/queue.h>

struct queued {
        TAILQ_ENTRY(queued) link;
        struct ctl_wish wish;
        struct ctl_call *call;
};
static TAILQ_HEAD(, queued) queue = TAILQ_HEAD_INITIALIZER(queue);

struct kernel_disk fake_disks[FAKE_NUMBERS];
struct fake_kernel fake_kernel;

void fake_kernel_begin(void)
{
        for (int i = 0; i < FAKE_NUMBERS; i++)
                fake_disks[i] = (struct kernel_disk){.holder = NO_PROCESS};
        fake_kernel = (struct fake_kernel){.user = "process 7 (dd)"};
}

void fake_disk_comes(int number)
{
        fake_disks[number] =
                (struct kernel_disk){.exists = true, .cookie = FAKE_FOREIGN, .holder = NO_PROCESS};
}

void fake_disk_comes_down(int number)
{
        fake_disk_comes(number);
        fake_disks[number].flags = FEATURE_RECOVERY;
        fake_disks[number].state = KERNEL_STATE_QUIESCED;
        fake_disks[number].was_started = true;
}

/* ---- its commands ---- */

static int get_info(const struct ctl_wish *wish, struct kernel_disk *disk)
{
        (void)wish;
        fake_kernel.looks++;
        if (fake_kernel.get_info_error)
                return fake_kernel.get_info_error;
        return disk->exists ? 0 : -ENODEV;
}

static int add(const struct ctl_wish *wish, struct kernel_disk *disk)
{
        fake_kernel.adds++;
        if (fake_kernel.hurried)
                fake_disk_comes(wish->number);
        fake_kernel.hurried = false;
        if (fake_kernel.releases > 0 && !disk->exists) {
                fake_kernel.releases--;
                return -EEXIST;
        }
        if (fake_kernel.add_error && !disk->exists)
                return fake_kernel.add_error;
        return kernel_disk_add(disk, &wish->request, wish->request.flags & ~fake_kernel.dropped_flags);
}

static int get_affinity(const struct ctl_wish *wish, struct kernel_disk *disk)
{
        (void)wish, (void)disk;
        return 0;
}

static int set_params(const struct ctl_wish *wish, struct kernel_disk *disk)
{
        return kernel_disk_set_params(disk, wish->size);
}

static int update_size(const struct ctl_wish *wish, struct kernel_disk *disk)
{
        return kernel_disk_update_size(disk, wish->size);
}

/* What the control helper does about a guarded command, before it and after it. */
static int recognise(const struct ctl_wish *wish, const struct kernel_disk *disk)
{
        return wish->guarded ? kernel_disk_recognise(disk, wish->cookie) : 0;
}

static int begin_recovery(const struct ctl_wish *wish, struct kernel_disk *disk)
{
        int r = recognise(wish, disk), confirmed;

        if (r < 0)
                return r;
        if (fake_kernel.held)
                return -EBUSY;
        fake_kernel.begun++;
        r = kernel_disk_begin_recovery(disk, false);
        if (fake_kernel.replaces)
                fake_disk_comes_down(wish->number);
        confirmed = recognise(wish, disk);
        return confirmed < 0 ? confirmed : r;
}

/* A test sends no command that would block. */
static int go_live(struct kernel_disk *disk, int checked)
{
        if (checked == 0)
                kernel_disk_go_live(disk);
        return checked == KERNEL_BLOCKS ? -EINTR : checked;
}

/* All workers have one pid. */
static int start(const struct ctl_wish *wish, struct kernel_disk *disk)
{
        (void)wish;
        return go_live(disk, kernel_disk_check_start(disk, disk->holder));
}

static int end_recovery(const struct ctl_wish *wish, struct kernel_disk *disk)
{
        int r = recognise(wish, disk);

        if (r < 0)
                return r;
        return go_live(disk, kernel_disk_check_end_recovery(disk, disk->holder));
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
static int stop(const struct ctl_wish *wish, struct kernel_disk *disk)
{
        struct fake_worker *worker = worker_of(wish->number);

        kernel_disk_stop(disk);
        if (worker)
                fake_worker_die(worker);
        return 0;
}

static int try_stop(const struct ctl_wish *wish, struct kernel_disk *disk)
{
        return disk->openers > 0 ? -EBUSY : stop(wish, disk);
}

static int stop_unheld(const struct ctl_wish *wish, struct kernel_disk *disk)
{
        fake_kernel.holds++;
        return fake_kernel.hold_error < 0 ? fake_kernel.hold_error : stop(wish, disk);
}

/* Its worker finishes and exits. */
static int quiesce(const struct ctl_wish *wish, struct kernel_disk *disk)
{
        struct fake_worker *worker = worker_of(wish->number);
        int r = kernel_disk_check_quiesce(disk);

        fake_kernel.quiesces++;
        if (r < 0 || !worker)
                return r;
        worker->crashes = fake_kernel.crashes;
        fake_worker_die(worker);
        return 0;
}

/* Fails for a disk that was removed since DEL_DEV was sent. An open disk stays until it is closed. */
static int del(const struct ctl_wish *wish, struct kernel_disk *disk)
{
        (void)wish;
        if (fake_kernel.vanishes)
                disk->exists = false;
        if (!disk->exists)
                return -ENODEV;
        disk->deleted = true;
        disk->exists = !kernel_disk_is_over(disk);
        return 0;
}

static int (*const acts[_COMMAND_MAX])(const struct ctl_wish *wish, struct kernel_disk *disk) = {
        [COMMAND_GET_INFO] = get_info,
        [COMMAND_GET_AFFINITY] = get_affinity,
        [COMMAND_ADD] = add,
        [COMMAND_SET_PARAMS] = set_params,
        [COMMAND_START] = start,
        [COMMAND_BEGIN_RECOVERY] = begin_recovery,
        [COMMAND_END_RECOVERY] = end_recovery,
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

static void drop(struct queued *queued)
{
        TAILQ_REMOVE(&queue, queued, link);
        free(queued);
}

void on_ctl_cancelled(struct ctl_call *call)
{
        struct queued *queued = TAILQ_FIRST(&queue);

        while (queued->call != call)
                queued = TAILQ_NEXT(queued, link);
        drop(queued);
}

bool fake_ctl_answer(void)
{
        struct queued *queued = TAILQ_FIRST(&queue);
        struct kernel_device device;
        struct kernel_disk *disk;
        struct ctl_call *call;
        struct ctl_wish wish;
        int r;

        if (!queued)
                return false;
        call = queued->call;
        wish = queued->wish;
        drop(queued);
        disk = &fake_disks[wish.number];
        r = acts[wish.type](&wish, disk);
        device = kernel_disk_info(wish.number, disk);
        device.queue_cpus[0] = 1;
        ctl_stand_in_answers(call, r, r < 0 ? NULL : &device);
        return true;
}
