/* SPDX-License-Identifier: MIT */
/* Finds out with a preflight worker whether a new disk could be created. */
#include "ublkd/reconcile/spec_preflight.h"
#include "ublkd/reconcile/backing/device_backing.h"
#include "ublkd/reconcile/worker/device_group.h"
#include "ublkd/reconcile/worker/device_launch.h"
#include "ublkd/reconcile/parts/device_words.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/parts/reconciler_devices.h"

#include "ublkd/base/sentence.h"
#include "ublkd/values/quantity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
        PREFLIGHT_LIMIT_USEC = 30 * 1000 * 1000, /* the same limit as for a worker that opens its store */
        REFUSAL_SIZE = 1024,
};

/* It lives as long as its worker, which may wait for a store that does not answer. */
struct spec_preflight {
        struct managed_device *device;
        struct worker_proc *worker;
        sd_event_source *timer;
        spec_tried then; /* NULL: called already, or the caller has ended the preflight */
        void *userdata;
        bool has_size;                  /* the spec has the size of the disk */
        bool same_target;               /* the spec keeps the target */
        bool hangs;                     /* the store has not answered in time */
        struct spec_preflight *waiting; /* of the preflight under way: the first one that waits for its end */
        struct spec_preflight *next;    /* of a waiting preflight, which has no worker */
};

/* Write a uid that differs from that of a restart's preflight. It is the same each time, so that the files that a
 * dead ublkd left behind are found. */
static void preflight_uid(const struct managed_device *device, char uid[static UID_TEXT_SIZE])
{
        char *last;

        memcpy(uid, device->id.uid, UID_TEXT_SIZE);
        last = uid + strlen(uid) - 1;
        *last = *last == '2' ? '3' : '2';
}

static void call_back(
        struct spec_preflight *preflight, bool tried, enum condition_reason reason, const char *refusal)
{
        spec_tried then = preflight->then;

        preflight->then = NULL;
        preflight->timer = sd_event_source_disable_unref(preflight->timer);
        if (then)
                then(preflight->userdata, tried, reason, refusal);
}

/* Let each waiting caller ask again: its spec may have changed. */
static void release_waiting(struct spec_preflight *preflight)
{
        while (preflight->waiting) {
                struct spec_preflight *one = preflight->waiting;

                preflight->waiting = one->next;
                call_back(one, false, REASON_NONE, NULL);
                free(one);
        }
}

static void preflight_free(struct spec_preflight *preflight)
{
        struct runtime_dir *dir = preflight->device->env->config.runtime_dir;
        char uid[UID_TEXT_SIZE];

        preflight_uid(preflight->device, uid);
        release_waiting(preflight);
        preflight->device->spec_preflight = NULL;
        sd_event_source_disable_unref(preflight->timer);
        worker_proc_free(preflight->worker);
        device_group_end_preflight(preflight->device, uid);
        (void)runtime_dir_remove_worker(dir, uid); /* the next preflight replaces a file that stays */
        (void)runtime_dir_remove_region(dir, uid);
        free(preflight);
}

static bool is_same_store(const struct spec_preflight *preflight)
{
        return preflight->same_target
               || device_backing_is_served_from(
                       &preflight->device->backing, worker_proc_stores(preflight->worker));
}

/* Return whether the store of the disk has become smaller than the disk, and the new disk would be as small. A
 * client that wants a smaller disk gives its size. */
static bool would_shrink(const struct spec_preflight *preflight)
{
        const struct device_geometry *disk = &preflight->device->view.geometry;
        const struct disk_params *params = worker_proc_params(preflight->worker);

        return !preflight->has_size && params && disk->error >= 0 && params->size < disk->size
               && is_same_store(preflight);
}

/* The store may have been cut off. The serving worker measures it; if it is shorter than its disk, the worker
 * latches that, and serves no zeroes once the store is as long as before. A growth to the current size changes
 * nothing. */
static void let_worker_measure(struct managed_device *device)
{
        if (device->process.worker && device->view.facts.worker == PLAN_WORKER_SERVING
                && device->view.geometry.error >= 0)
                (void)worker_proc_grow(device->process.worker, device->view.geometry.size);
}

static void refuse_shrink(const struct spec_preflight *preflight, char text[static REFUSAL_SIZE])
{
        char there[SIZE_TEXT_MAX], before[SIZE_TEXT_MAX];

        format_size(worker_proc_params(preflight->worker)->size, there);
        format_size(preflight->device->view.geometry.size, before);
        snprintf(text, REFUSAL_SIZE,
                "The backing store offers %s, and the disk has %s; if the backing store was cut off, restore "
                "it from a copy: what is only grown reads as zeroes. For a smaller disk, give its size in "
                "\"size\".",
                there, before);
}

/* Write a sentence into *ret; NULL: the worker could serve. */
static void judge(const struct spec_preflight *preflight, char text[static REFUSAL_SIZE], const char **ret)
{
        const struct worker_proc *worker = preflight->worker;
        const struct problem_list *problems = worker_proc_problems(worker);
        const char *detail = problems->count > 0 ? problems->items[0].detail : NULL;
        bool shrinks = !detail && would_shrink(preflight);

        if (shrinks || (detail && problems->items[0].error == ENOSPC && is_same_store(preflight)))
                let_worker_measure(preflight->device);
        *ret = detail || shrinks || !worker_proc_params(worker) ? text : NULL;
        if (detail)
                snprintf(text, REFUSAL_SIZE, "%s%s", detail, full_stop(detail));
        else if (shrinks)
                refuse_shrink(preflight, text);
        else if (*ret)
                snprintf(text, REFUSAL_SIZE, "The preflight worker %s.", worker_proc_death(worker)->sentence);
}

static enum condition_reason reason_of(struct managed_device *device, const struct worker_proc *worker)
{
        const struct problem_list *problems = worker_proc_problems(worker);

        return problems->count > 0 ? device_words_reason(&device->words, problems->items[0].reason)
                                   : REASON_NONE;
}

static void on_changed(void *userdata, struct worker_proc *worker)
{
        struct managed_device *device = userdata;
        char text[REFUSAL_SIZE];
        const char *refusal;

        if (!worker_proc_death(worker)) {
                if (worker_proc_stage(worker) == WORKER_STAGE_OPEN)
                        worker_proc_kill(
                                worker); /* the preflight is done; a dead worker does not hold the store */
                return;
        }
        judge(device->spec_preflight, text, &refusal);
        call_back(device->spec_preflight, true, reason_of(device, worker), refusal);
        preflight_free(device->spec_preflight);
}

static int on_limit(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct spec_preflight *preflight = userdata;

        worker_proc_kill(preflight->worker); /* it dies when the call that it waits for returns */
        preflight->hangs = true;
        release_waiting(preflight);
        call_back(preflight, true, REASON_NONE, "The backing store does not answer.");
        return 0;
}

/* Begin `preflight`; free it on failure. */
static int start(
        struct spec_preflight *preflight, const struct device_record *record, const struct device_spec *spec)
{
        struct managed_device *device = preflight->device;
        char uid[UID_TEXT_SIZE];
        int r;

        preflight_uid(device, uid);
        preflight->has_size = spec->options.size > 0;
        preflight->same_target = device_spec_targets_equal(record->spec, spec);
        device->spec_preflight = preflight;
        r = runtime_dir_remove_region(device->env->config.runtime_dir, uid);
        if (r >= 0)
                r = device_launch_preflight(device, record, spec, uid, on_changed, &preflight->worker);
        if (r >= 0)
                r = sd_event_add_time_relative(device->env->config.event, &preflight->timer, CLOCK_MONOTONIC,
                        PREFLIGHT_LIMIT_USEC, 0, on_limit, preflight);
        if (r < 0)
                preflight_free(preflight);
        return r;
}

int spec_preflight_begin(struct reconciler *reconciler, const struct device_record *record,
        const struct device_spec *spec, spec_tried then, void *userdata, struct spec_preflight **ret)
{
        struct managed_device *device = reconciler_find(reconciler, record->name);
        struct spec_preflight *preflight;
        int r = 0;

        if (!device)
                return -ENOENT;
        if (device->spec_preflight && device->spec_preflight->hangs)
                return -EBUSY;
        preflight = calloc(1, sizeof(*preflight));
        if (!preflight)
                return -ENOMEM;
        preflight->device = device;
        if (device->spec_preflight) {
                preflight->next = device->spec_preflight->waiting;
                device->spec_preflight->waiting = preflight;
        } else
                r = start(preflight, record, spec);
        if (r < 0)
                return r;
        preflight->then = then;
        preflight->userdata = userdata;
        *ret = preflight;
        return 0;
}

static void stop_waiting(struct spec_preflight *preflight)
{
        struct spec_preflight **link = &preflight->device->spec_preflight->waiting;

        while (*link != preflight)
                link = &(*link)->next;
        *link = preflight->next;
        free(preflight);
}

struct spec_preflight *spec_preflight_end(struct spec_preflight *preflight)
{
        if (!preflight)
                return NULL;
        if (!preflight->worker) {
                stop_waiting(preflight);
                return NULL;
        }
        preflight->then = NULL;
        preflight->timer = sd_event_source_disable_unref(preflight->timer);
        worker_proc_kill(preflight->worker);
        return NULL;
}

void device_spec_preflight_drop(struct managed_device *device)
{
        if (!device->spec_preflight)
                return;
        call_back(device->spec_preflight, false, REASON_NONE, NULL);
        preflight_free(device->spec_preflight);
}
