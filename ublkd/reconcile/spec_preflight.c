/* SPDX-License-Identifier: MIT */
/* Finds out with a worker on trial whether a new disk could be created. */
#include "ublkd/reconcile/spec_preflight.h"
#include "ublkd/reconcile/parts/device_launch.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/parts/reconciler_devices.h"

#include "ublkd/base/sentence.h"

#include <stdio.h>
#include <string.h>

enum {
        TRIAL_LIMIT_USEC = 30 * 1000 * 1000, /* the same limit as for a worker that opens its store */
        REFUSAL_SIZE = 1024,
};

/* It lives as long as its worker, which may wait for a store that does not answer. */
struct spec_trial {
        struct managed_device *device;
        struct worker_proc *worker;
        sd_event_source *timer;
        spec_tried then; /* NULL: called already, or the caller has ended the trial */
        void *userdata;
        bool hangs;                 /* the store has not answered in time */
        struct spec_trial *waiting; /* of the trial under way: the first one that waits for its end */
        struct spec_trial *next;    /* of a waiting trial, which has no worker */
};

/* Write a uid that differs from that of a restart's trial. It is the same each time, so that a file left behind is
 * replaced. */
static void trial_uid(const struct managed_device *device, char uid[static UID_TEXT_SIZE])
{
        char *last;

        memcpy(uid, device->id.uid, UID_TEXT_SIZE);
        last = uid + strlen(uid) - 1;
        *last = *last == '2' ? '3' : '2';
}

static void call_back(struct spec_trial *trial, bool tried, const char *refusal)
{
        spec_tried then = trial->then;

        trial->then = NULL;
        trial->timer = sd_event_source_disable_unref(trial->timer);
        if (then)
                then(trial->userdata, tried, refusal);
}

/* Let each waiting caller ask again: its spec may have changed. */
static void release_waiting(struct spec_trial *trial)
{
        while (trial->waiting) {
                struct spec_trial *one = trial->waiting;

                trial->waiting = one->next;
                call_back(one, false, NULL);
                free(one);
        }
}

static void trial_free(struct spec_trial *trial)
{
        struct runtime_dir *dir = trial->device->env->config.runtime_dir;
        char uid[UID_TEXT_SIZE];

        trial_uid(trial->device, uid);
        release_waiting(trial);
        trial->device->spec_trial = NULL;
        sd_event_source_disable_unref(trial->timer);
        worker_proc_free(trial->worker);
        (void)runtime_dir_remove_worker(dir, uid); /* a file that stays is replaced by the next trial */
        (void)runtime_dir_remove_region(dir, uid);
        free(trial);
}

/* Write a sentence into *ret; NULL: the worker could serve. */
static void judge(const struct worker_proc *worker, char text[static REFUSAL_SIZE], const char **ret)
{
        const struct problem_list *problems = worker_proc_problems(worker);
        const char *detail = problems->count > 0 ? problems->items[0].detail : NULL;

        *ret = detail || !worker_proc_params(worker) ? text : NULL;
        if (detail)
                snprintf(text, REFUSAL_SIZE, "%s%s", detail, full_stop(detail));
        else if (*ret)
                snprintf(text, REFUSAL_SIZE, "The worker that tried it %s.",
                        worker_proc_death(worker)->sentence);
}

static void on_changed(void *userdata, struct worker_proc *worker)
{
        struct managed_device *device = userdata;
        char text[REFUSAL_SIZE];
        const char *refusal;

        if (!worker_proc_death(worker)) {
                if (worker_proc_stage(worker) == WORKER_STAGE_OPEN)
                        worker_proc_kill(
                                worker); /* the trial is done; a dead worker does not hold the store */
                return;
        }
        judge(worker, text, &refusal);
        call_back(device->spec_trial, true, refusal);
        trial_free(device->spec_trial);
}

static int on_limit(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct spec_trial *trial = userdata;

        worker_proc_kill(trial->worker); /* it dies when the call that it waits for returns */
        trial->hangs = true;
        release_waiting(trial);
        call_back(trial, true, "The backing store does not answer.");
        return 0;
}

/* Begin `trial`; free it on failure. */
static int start(struct spec_trial *trial, const struct device_record *record, const struct device_spec *spec)
{
        struct managed_device *device = trial->device;
        char uid[UID_TEXT_SIZE];
        int r;

        trial_uid(device, uid);
        device->spec_trial = trial;
        r = device_launch_trial(device, record, spec, uid, on_changed, &trial->worker);
        if (r >= 0)
                r = sd_event_add_time_relative(device->env->config.event, &trial->timer, CLOCK_MONOTONIC,
                        TRIAL_LIMIT_USEC, 0, on_limit, trial);
        if (r < 0)
                trial_free(trial);
        return r;
}

int spec_trial_begin(struct reconciler *reconciler, const struct device_record *record,
        const struct device_spec *spec, spec_tried then, void *userdata, struct spec_trial **ret)
{
        struct managed_device *device = reconciler_find(reconciler, record->name);
        struct spec_trial *trial;
        int r = 0;

        if (!device)
                return -ENOENT;
        if (device->spec_trial && device->spec_trial->hangs)
                return -EBUSY;
        trial = calloc(1, sizeof(*trial));
        if (!trial)
                return -ENOMEM;
        trial->device = device;
        if (device->spec_trial) {
                trial->next = device->spec_trial->waiting;
                device->spec_trial->waiting = trial;
        } else
                r = start(trial, record, spec);
        if (r < 0)
                return r;
        trial->then = then;
        trial->userdata = userdata;
        *ret = trial;
        return 0;
}

static void stop_waiting(struct spec_trial *trial)
{
        struct spec_trial **link = &trial->device->spec_trial->waiting;

        while (*link != trial)
                link = &(*link)->next;
        *link = trial->next;
        free(trial);
}

struct spec_trial *spec_trial_end(struct spec_trial *trial)
{
        if (!trial)
                return NULL;
        if (!trial->worker) {
                stop_waiting(trial);
                return NULL;
        }
        trial->then = NULL;
        trial->timer = sd_event_source_disable_unref(trial->timer);
        worker_proc_kill(trial->worker);
        return NULL;
}

void device_spec_trial_forget(struct managed_device *device)
{
        if (!device->spec_trial)
                return;
        call_back(device->spec_trial, false, NULL);
        trial_free(device->spec_trial);
}
