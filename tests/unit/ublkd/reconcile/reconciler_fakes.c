/* SPDX-License-Identifier: MIT */
/* Stands in for ublk_ctl.c. */
#include "tests/unit/ublkd/reconcile/reconciler_fakes.h"

#include "tests/unit/ublkd/reconcile/reconciler_fake_worker.h"

#include "ublkd/reconcile/view/observe.h"

#include <sys/queue.h>

struct ublk_ctl_call {
        TAILQ_ENTRY(ublk_ctl_call) link;
        int (*act)(struct ublk_ctl_call *call, struct kernel_device *ret);
        int number;
        uint64_t size;
        struct kernel_device_request request;
        ublk_ctl_done done;
        void *userdata;
};
static TAILQ_HEAD(, ublk_ctl_call) calls = TAILQ_HEAD_INITIALIZER(calls);

struct fake_disk fake_disks[FAKE_NUMBERS];
char fake_user[64];
int fake_get_info_error, fake_hold_error;
unsigned fake_looks, fake_quiesces, fake_holds;
bool fake_hurried;
bool fake_crashes;
int fake_add_error;
unsigned fake_releases;
bool fake_held;
uint64_t fake_dropped_flags;
unsigned fake_adds;

/* ---- the kernel ---- */

void ublk_ctl_on_released(
        struct ublk_ctl *ctl _unused_, ublk_ctl_released on_released _unused_, void *userdata _unused_)
{
}

uint64_t ublk_ctl_flags(enum kernel_recovery recovery)
{
        return recovery == KERNEL_RECOVERY_NONE ? 0 : 1;
}

uint64_t ublk_ctl_extra_flags(enum kernel_recovery recovery, bool batch _unused_, uint64_t features)
{
        return recovery == KERNEL_RECOVERY_NONE ? 0 : features;
}

const char *ublk_ctl_missing(uint64_t wanted, uint64_t got)
{
        return wanted & ~got ? "USER_RECOVERY" : NULL;
}

bool fake_ctl_answer(void)
{
        struct ublk_ctl_call *call = TAILQ_FIRST(&calls);
        struct kernel_device device;
        int r;

        if (!call)
                return false;
        TAILQ_REMOVE(&calls, call, link);
        r = call->act(call, &device);
        call->done(call->userdata, r, r < 0 ? NULL : &device);
        free(call);
        return true;
}

void ublk_ctl_call_cancel(struct ublk_ctl_call *call)
{
        TAILQ_REMOVE(&calls, call, link);
        free(call);
}

static int submit(int (*act)(struct ublk_ctl_call *call, struct kernel_device *ret), int number,
        const struct kernel_device_request *request, ublk_ctl_done done, void *userdata,
        struct ublk_ctl_call **ret)
{
        struct ublk_ctl_call *call = calloc(1, sizeof(*call));

        if (!call)
                abort();
        *call = (struct ublk_ctl_call){.act = act, .number = number, .done = done, .userdata = userdata};
        if (request)
                call->request = *request;
        TAILQ_INSERT_TAIL(&calls, call, link);
        *ret = call;
        return 0;
}

/* ublk_ctl_NAME() without own parameters: does `act` when the test answers it. */
#define COMMAND(name, act)                                                                                   \
        int ublk_ctl_##name(struct ublk_ctl *ctl _unused_, int number, ublk_ctl_done done, void *userdata,   \
                struct ublk_ctl_call **ret)                                                                  \
        {                                                                                                    \
                return submit(act, number, NULL, done, userdata, ret);                                       \
        }

static int act_get_info(struct ublk_ctl_call *call, struct kernel_device *ret)
{
        fake_looks++;
        if (fake_get_info_error)
                return fake_get_info_error;
        if (!fake_disks[call->number].there)
                return -ENODEV;
        *ret = fake_disks[call->number].device;
        return 0;
}

COMMAND(get_info, act_get_info)

static int act_add(struct ublk_ctl_call *call, struct kernel_device *ret)
{
        struct fake_disk *disk = &fake_disks[call->number];

        fake_adds++;
        if (fake_hurried)
                *disk = (struct fake_disk){
                        .there = true, .device = {.number = call->number, .cookie = FAKE_FOREIGN}
                };
        fake_hurried = false;
        if (disk->there)
                return -EEXIST;
        if (fake_releases > 0) {
                fake_releases--;
                return -EEXIST;
        }
        if (fake_add_error)
                return fake_add_error;
        *disk = (struct fake_disk){
                .there = true,
                .device = {.number = call->number,
                           .cookie = call->request.cookie,
                           .flags = call->request.flags & ~fake_dropped_flags,
                           .queues = call->request.queues,
                           .queue_depth = call->request.queue_depth,
                           .max_io_size = call->request.max_io_size}
        };
        *ret = disk->device;
        return 0;
}

int ublk_ctl_add(struct ublk_ctl *ctl _unused_, const struct kernel_device_request *request,
        ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret)
{
        return submit(act_add, request->number, request, done, userdata, ret);
}

static int act_nothing(struct ublk_ctl_call *call _unused_, struct kernel_device *ret _unused_)
{
        return 0;
}

int ublk_ctl_set_params(struct ublk_ctl *ctl _unused_, int number, const struct disk_params *params _unused_,
        ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret)
{
        return submit(act_nothing, number, NULL, done, userdata, ret);
}

static int act_get_affinity(struct ublk_ctl_call *call _unused_, struct kernel_device *ret)
{
        *ret = (struct kernel_device){.queue_cpus = {1}};
        return 0;
}

int ublk_ctl_get_affinity(struct ublk_ctl *ctl _unused_, int number, uint16_t queue _unused_,
        ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret)
{
        return submit(act_get_affinity, number, NULL, done, userdata, ret);
}

static int act_begin_recovery(struct ublk_ctl_call *call _unused_, struct kernel_device *ret _unused_)
{
        return fake_held ? -EBUSY : 0;
}

COMMAND(begin_recovery, act_begin_recovery)

static int act_live(struct ublk_ctl_call *call, struct kernel_device *ret _unused_)
{
        fake_disks[call->number].device.state = KERNEL_STATE_LIVE;
        return 0;
}

int ublk_ctl_start(struct ublk_ctl *ctl _unused_, int number, pid_t worker _unused_, ublk_ctl_done done,
        void *userdata, struct ublk_ctl_call **ret)
{
        return submit(act_live, number, NULL, done, userdata, ret);
}

int ublk_ctl_end_recovery(struct ublk_ctl *ctl _unused_, int number, pid_t worker _unused_,
        ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret)
{
        return submit(act_live, number, NULL, done, userdata, ret);
}

/* Its worker exits. */
static int act_stop(struct ublk_ctl_call *call, struct kernel_device *ret _unused_)
{
        struct fake_worker *worker;

        fake_disks[call->number].device.state = KERNEL_STATE_DEAD;
        TAILQ_FOREACH (worker, &fake_workers, link)
                if (worker->number == call->number && !worker->dead) {
                        fake_worker_die(worker);
                        break;
                }
        return 0;
}

COMMAND(stop, act_stop)

static int act_try_stop(struct ublk_ctl_call *call, struct kernel_device *ret)
{
        return fake_disks[call->number].open ? -EBUSY : act_stop(call, ret);
}

COMMAND(try_stop, act_try_stop)

static int act_stop_unheld(struct ublk_ctl_call *call, struct kernel_device *ret)
{
        return ++fake_holds && fake_hold_error < 0 ? fake_hold_error : act_stop(call, ret);
}

COMMAND(stop_unheld, act_stop_unheld)

/* Its worker finishes and exits. */
static int act_quiesce(struct ublk_ctl_call *call, struct kernel_device *ret _unused_)
{
        struct fake_worker *worker;

        fake_quiesces++;
        TAILQ_FOREACH (worker, &fake_workers, link)
                if (worker->number == call->number && !worker->dead) {
                        worker->crashes = fake_crashes;
                        fake_worker_die(worker);
                        break;
                }
        return 0;
}

COMMAND(quiesce, act_quiesce)

static int act_update_size(struct ublk_ctl_call *call, struct kernel_device *ret _unused_)
{
        fake_disks[call->number].size = call->size;
        return 0;
}

int ublk_ctl_update_size(struct ublk_ctl *ctl _unused_, int number, uint64_t size, ublk_ctl_done done,
        void *userdata, struct ublk_ctl_call **ret)
{
        int r = submit(act_update_size, number, NULL, done, userdata, ret);

        (*ret)->size = size;
        return r;
}

/* Fails for a disk that was removed since DEL_DEV was sent. An open disk stays until it is closed. */
static int act_del(struct ublk_ctl_call *call, struct kernel_device *ret _unused_)
{
        struct fake_disk *disk = &fake_disks[call->number];
        int r = disk->there && !disk->vanishes ? 0 : -ENODEV;

        disk->there = r == 0 && disk->open;
        return r;
}

COMMAND(del, act_del)
