/* SPDX-License-Identifier: MIT */
/* Stands in for ublk_ctl.c and worker_proc.c. */
#include "tests/unit/ublkd/reconcile/reconciler_fakes.h"

#include "tests/unit/ublkd/reconcile/reconciler_fake_worker.h"

#include "ublkd/reconcile/view/observe.h"

#include <stdio.h>
#include <signal.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

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

struct fake_workers fake_workers = TAILQ_HEAD_INITIALIZER(fake_workers);

struct fake_disk fake_disks[FAKE_NUMBERS];
char fake_user[64];
int fake_get_info_error, fake_hold_error;
int fake_adopt_error = -ENOENT;
unsigned fake_looks, fake_kills, fake_quiesces, fake_holds;
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
        struct worker_proc *worker;

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
        struct worker_proc *worker;

        fake_quiesces++;
        TAILQ_FOREACH (worker, &fake_workers, link)
                if (worker->number == call->number && !worker->dead) {
                        if (fake_crashes)
                                worker->death = (struct worker_death){.by_signal = true, .code = SIGSEGV};
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

/* ---- workers ---- */

struct worker_proc *fake_worker(const char *name)
{
        struct worker_proc *worker;

        TAILQ_FOREACH (worker, &fake_workers, link)
                if (strcmp(worker->name, name) == 0)
                        return worker;
        return NULL;
}

int worker_proc_spawn(sd_event *event _unused_, struct runtime_dir *dir _unused_,
        struct worker_start *starter _unused_, const struct worker_msg *config, int store,
        worker_proc_changed changed, void *userdata, struct worker_proc **ret)
{
        struct worker_proc *worker = calloc(1, sizeof(*worker));

        if (!worker)
                abort();
        *worker = (struct worker_proc){
                .name = strdup(config->config.name),
                .epoch = config->config.epoch,
                .restart = config->config.restart,
                .lock = config->config.lock,
                .given = store,
                .exists = config->config.exists,
                .shared = config->config.shared,
                .has_data = config->config.has_data,
                .expected_served = config->config.expected_served,
                .store = {.fd = -1},
                .number = -1,
                .changed = changed,
                .userdata = userdata,
                .params = {.size = 1 << 20,
                          .size_max = 1 << 20,
                          .logical_block_size = 512,
                          .queues = config->config.queues,
                          .queue_depth = config->config.queue_depth,
                          .max_io_size = config->config.max_io_size}
        };
        TAILQ_INSERT_TAIL(&fake_workers, worker, link);
        *ret = worker;
        return 0;
}

int worker_proc_adopt(sd_event *event _unused_, struct runtime_dir *dir _unused_,
        struct worker_start *starter _unused_, const char *name, const char *uid _unused_,
        worker_proc_changed changed, void *userdata, struct worker_proc **ret)
{
        struct worker_proc *worker;

        if (fake_adopt_error)
                return fake_adopt_error;
        worker = calloc(1, sizeof(*worker));
        if (!worker)
                abort();
        *worker = (struct worker_proc){
                .name = strdup(name),
                .adopted = true,
                .given = -1,
                .store = {.fd = -1},
                .number = -1,
                .changed = changed,
                .userdata = userdata,
        };
        TAILQ_INSERT_TAIL(&fake_workers, worker, link);
        *ret = worker;
        return 0;
}

struct worker_proc *worker_proc_free(struct worker_proc *worker)
{
        if (!worker)
                return NULL;
        TAILQ_REMOVE(&fake_workers, worker, link);
        free(worker->name);
        free(worker->key);
        free(worker->params.stable_path);
        backing_claims_clear(&worker->params.claims);
        problem_list_clear(&worker->params.sharing);
        problem_list_clear(&worker->problems);
        problem_list_clear(&worker->refusal);
        problem_list_clear(&worker->notices);
        close_fd(worker->store.fd);
        free(worker);
        return NULL;
}

void fake_worker_open(struct worker_proc *worker, const char *key)
{
        worker->key = strdup(key);
        (void)backing_claims_add(
                &worker->params.claims, &(struct backing_claim){worker->key, worker->start, 0, true, false});
        backing_claims_resize(&worker->params.claims, worker->params.size);
        worker->opened = true;
        worker->stage = WORKER_STAGE_OPEN;
        worker->changed(worker->userdata, worker);
}

void fake_worker_store(struct worker_proc *worker, const char *identity, int fd)
{
        struct stat stat;

        worker->store =
                (struct worker_store){.known = true, .identity = {.basis = BACKING_FILE_HANDLE}, .fd = fd};
        snprintf(worker->store.identity.boot, sizeof(worker->store.identity.boot), "%s", identity);
        snprintf(worker->store.identity.lasting, sizeof(worker->store.identity.lasting), "%s", identity);
        if (fd < 0 || fstat(fd, &stat) < 0)
                return;
        worker->store.major = major(stat.st_dev);
        worker->store.minor = minor(stat.st_dev);
        worker->store.inode = stat.st_ino;
}

void fake_worker_disk(struct worker_proc *worker, const char *identity, int fd, bool claimed)
{
        fake_worker_store(worker, identity, fd);
        worker->store.identity.basis = BACKING_DISK_WWID;
        worker->store.identity.is_disk = true;
        worker->store.claimed = claimed;
}

int fake_worker_given(const struct worker_proc *worker)
{
        return worker->given;
}

const struct worker_store *worker_proc_store(const struct worker_proc *worker)
{
        return worker->store.known ? &worker->store : NULL;
}

int worker_proc_take_store(struct worker_proc *worker)
{
        return TAKE_FD(worker->store.fd);
}

struct problem_list *worker_proc_notices(struct worker_proc *worker)
{
        return &worker->notices;
}

struct disk_params *fake_worker_params(struct worker_proc *worker)
{
        return &worker->params;
}

void fake_worker_advise(struct worker_proc *worker, const char *stable_path)
{
        free(worker->params.stable_path);
        worker->params.path_may_change = true;
        worker->params.stable_path = stable_path ? strdup(stable_path) : NULL;
}

void fake_worker_place(struct worker_proc *worker, uint64_t start)
{
        worker->start = start;
}

void fake_worker_ready(struct worker_proc *worker)
{
        worker->stage = WORKER_STAGE_READY;
        worker->changed(worker->userdata, worker);
}

void fake_worker_greet(struct worker_proc *worker, uint16_t epoch, int number)
{
        worker->epoch = epoch;
        worker->number = number;
        worker->params = (struct disk_params){.size = 1 << 20,
                .size_max = 1 << 20,
                .logical_block_size = 512,
                .queues = 1,
                .queue_depth = 128,
                .max_io_size = 1 << 20};
        worker->opened = true;
        worker->stage = WORKER_STAGE_SERVING;
        worker->changed(worker->userdata, worker);
}

void fake_worker_leave(struct worker_proc *worker)
{
        worker->stage = WORKER_STAGE_LEAVING;
        worker->changed(worker->userdata, worker);
}

void fake_worker_die(struct worker_proc *worker)
{
        struct fake_disk *disk = worker->number < 0 ? NULL : &fake_disks[worker->number];

        if (disk && disk->device.state == KERNEL_STATE_LIVE)
                disk->device.state = KERNEL_STATE_QUIESCED;
        worker->dead = true;
        worker->stage = WORKER_STAGE_LEAVING;
        strcpy(worker->death.sentence, worker->death.by_signal ? "was killed by SIGSEGV" : "died");
        worker->changed(worker->userdata, worker);
}

void fake_worker_refuse(struct worker_proc *worker, const char *reason, const char *detail)
{
        if (problem_add(&worker->problems, EBUSY, "/target", reason, "%s", detail) < 0)
                abort();
        fake_worker_die(worker);
}

void fake_worker_refuse_size(struct worker_proc *worker, const char *detail)
{
        if (problem_add(&worker->problems, ENOSPC, "/size", "BackingTooSmall", "%s", detail) < 0)
                abort();
        fake_worker_die(worker);
}

void fake_worker_find_locked(struct worker_proc *worker, pid_t holder, const char *detail)
{
        worker->holder = holder;
        fake_worker_refuse(worker, "BackingInUse", detail);
}

void worker_proc_refuse(struct worker_proc *worker, const char *fault)
{
        worker->fault = fault;
        worker_proc_kill(worker);
}

enum worker_lock fake_worker_lock(const struct worker_proc *worker)
{
        return worker->lock;
}

void worker_proc_kill(struct worker_proc *worker)
{
        fake_kills++;
        worker->stage = WORKER_STAGE_LEAVING;
}

const struct worker_death *worker_proc_death(const struct worker_proc *worker)
{
        return worker->dead ? &worker->death : NULL;
}

uint64_t worker_proc_died_at(const struct worker_proc *worker)
{
        return worker->dead;
}

int worker_proc_grow(struct worker_proc *worker, uint64_t size)
{
        worker->asked = size;
        return 0;
}

uint64_t fake_worker_asked(const struct worker_proc *worker)
{
        return worker->asked;
}

void fake_worker_grow(struct worker_proc *worker, const char *refusal)
{
        problem_list_clear(&worker->refusal);
        if (refusal)
                (void)problem_add(&worker->refusal, ENOSPC, "/size", "BackingTooSmall", "%s", refusal);
        else {
                worker->params.size = worker->params.size_max = worker->asked;
                backing_claims_resize(&worker->params.claims, worker->asked);
        }
        worker->changed(worker->userdata, worker);
}

const struct problem_list *worker_proc_refusal(const struct worker_proc *worker)
{
        return &worker->refusal;
}

void worker_proc_forget_refusal(struct worker_proc *worker)
{
        problem_list_clear(&worker->refusal);
}

int worker_proc_go(struct worker_proc *worker, int number, const struct data_route *route _unused_,
        const char *queue_cpus _unused_)
{
        worker->number = number;
        worker->stage = WORKER_STAGE_FETCHING;
        return 0;
}

int worker_proc_live(struct worker_proc *worker)
{
        worker->stage = WORKER_STAGE_SERVING;
        return 0;
}
