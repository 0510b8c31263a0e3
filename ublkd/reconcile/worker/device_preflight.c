/* SPDX-License-Identifier: MIT */
/* A restart ends a disk's worker, and its requests then wait for the next one. Before that, a preflight
 * worker opens the backing store as the next worker will, and exits. If it cannot open the store, the disk
 * keeps its worker. A preflight worker serves nothing, claims nothing, and has a socket and a region of its
 * own. */
#include "ublkd/reconcile/worker/device_preflight.h"
#include "ublkd/reconcile/backing/device_backing.h"
#include "ublkd/reconcile/backing/device_faults.h"
#include "ublkd/reconcile/worker/device_group.h"
#include "ublkd/reconcile/worker/device_launch.h"
#include "ublkd/reconcile/parts/device_words.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/backing/device_space.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/view/user_request.h"

#include "ublkd/base/sentence.h"

#include <stdio.h>
#include <string.h>

enum { PREFLIGHT_LIMIT_USEC = 30 * 1000 * 1000 }; /* the same limit as for a worker that opens its store */

/* Write a uid that no device has: uids are random. It is the same each time, so that the files that a dead ublkd
 * left behind are found. */
static void preflight_uid(const struct managed_device *device, char uid[static UID_TEXT_SIZE])
{
        char *last;

        memcpy(uid, device->id.uid, UID_TEXT_SIZE);
        last = uid + strlen(uid) - 1;
        *last = *last == '0' ? '1' : '0';
}

static void drop_process(struct managed_device *device)
{
        struct runtime_dir *dir = device->env->config.runtime_dir;
        char uid[UID_TEXT_SIZE];

        if (!device->preflight.worker)
                return;
        preflight_uid(device, uid);
        device->preflight.worker = worker_proc_free(device->preflight.worker);
        device_group_end_preflight(device, uid);
        (void)runtime_dir_remove_worker(dir, uid); /* the next preflight replaces a file that stays */
        (void)runtime_dir_remove_region(dir, uid);
}

void device_preflight_drop(struct managed_device *device)
{
        device->preflight.timer = sd_event_source_disable_unref(device->preflight.timer);
        drop_process(device);
        free(device->preflight.sentence);
        device->preflight = (struct restart_preflight){};
}

static void conclude(struct managed_device *device, int result)
{
        void (*then)(struct managed_device *, int) = device->preflight.then;

        device->preflight.then = NULL;
        device->preflight.timer = sd_event_source_disable_unref(device->preflight.timer);
        then(device, result);
}

static void refuse(struct managed_device *device, enum condition_reason reason, const char *sentence)
{
        const struct device_record *record = device_store_get(device->env->config.store, device->id.name);

        free(device->preflight.sentence);
        device->preflight.reason = reason;
        device->preflight.sentence = strdup(sentence); /* on ENOMEM the status lacks the cause */
        device->preflight.refused = record->restart;
        /* On failure (a full disk) the next supervisor only tries the restart again. */
        (void)device_store_refuse_restart(device->env->config.store, device->id.name);
        device_faults_refuse(device, record);
        device_emit(device, EVENT_WARNING, REASON_CANNOT_RESTART,
                "The restart was refused, because the next worker could not take over: %s%s The old worker "
                "continues to serve.",
                sentence, full_stop(sentence));
        conclude(device, -ECANCELED);
}

static void refuse_dead(struct managed_device *device, const struct worker_death *death)
{
        char sentence[256];

        snprintf(sentence, sizeof(sentence), "The preflight worker %s.", death->sentence);
        refuse(device, REASON_NONE, sentence);
}

/* A preflight of an older spec does not decide about the spec that has come since. */
static void ask_again(struct managed_device *device)
{
        device_note_clear(device);
        conclude(device, -ECONNRESET);
}

/* The worker that it has serves on, and must not serve zeroes once the store is as long as it was. */
static void take_cut(struct managed_device *device, const struct device_record *record)
{
        char uid[UID_TEXT_SIZE];

        preflight_uid(device, uid);
        device_faults_take_cut(device, record, uid);
}

static void judge(struct managed_device *device)
{
        const struct device_record *record = device_store_get(device->env->config.store, device->id.name);
        const struct problem_list *problems = worker_proc_problems(device->preflight.worker);
        const struct disk_params *params = worker_proc_params(device->preflight.worker);

        bool refused = problems->count > 0 || !params
                       || device_backing_check_geometry(device, record, params) < 0
                       || device_backing_check_frozen(device, params) < 0;

        if (refused)
                take_cut(device, record);
        if (refused && !user_request_equal(device->preflight.request, user_request_of(record)))
                ask_again(device);
        else if (problems->count > 0)
                refuse(device, device_words_reason(&device->words, problems->items[0].reason),
                        problems->items[0].detail);
        else if (!params)
                refuse_dead(device, worker_proc_death(device->preflight.worker));
        else if (refused)
                refuse(device, device->note.reason, device->note.sentence ? device->note.sentence : "");
        else {
                device->preflight.passed = record->restart;
                conclude(device, 0);
        }
}

static void on_preflight_changed(void *userdata, struct worker_proc *worker)
{
        struct managed_device *device = userdata;

        if (!worker_proc_death(worker)) {
                if (worker_proc_stage(worker) == WORKER_STAGE_OPEN)
                        worker_proc_kill(
                                worker); /* the preflight is done; a dead worker does not hold the store */
                return;
        }
        if (device->preflight.then)
                judge(device);
        drop_process(device);
}

static int on_preflight_limit(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct managed_device *device = userdata;

        worker_proc_kill(device->preflight.worker); /* it dies when the call that it waits for returns */
        refuse(device, REASON_NONE, "The backing store does not answer.");
        return 0;
}

bool device_preflight_fails_writes(const struct managed_device *device, const struct device_record *record)
{
        return device_spec_on_crash(record->spec) != ON_CRASH_REISSUE && device_space_is_waited_for(device);
}

void device_preflight_begin(struct managed_device *device, const struct device_record *record,
        void (*then)(struct managed_device *device, int result))
{
        char uid[UID_TEXT_SIZE];
        int r;

        device->preflight.then = then;
        if (device->preflight.passed == record->restart
                && user_request_equal(device->preflight.request, user_request_of(record))) {
                conclude(device, 0);
                return;
        }
        if (device_preflight_fails_writes(device, record)) {
                refuse(device, REASON_NONE,
                        "Writes wait for room in the backing store, and a restart would fail them, "
                        "because recovery.onCrash is not \"reissue\"; make room first.");
                return;
        }
        if (device->preflight.worker) {
                refuse(device, REASON_NONE,
                        "The backing store did not answer the last preflight worker, which has not "
                        "exited yet.");
                return;
        }
        device->preflight.request = user_request_of(record);
        preflight_uid(device, uid);
        /* A cut that an earlier preflight worker has found is not one of this disk any more. */
        r = runtime_dir_remove_region(device->env->config.runtime_dir, uid);
        if (r >= 0)
                r = device_launch_worker(device, record, WORKER_PREFLIGHT_NAME, uid, WORKER_LOCK_NEVER,
                        on_preflight_changed, &device->preflight.worker);
        if (r >= 0)
                r = sd_event_add_time_relative(device->env->config.event, &device->preflight.timer,
                        CLOCK_MONOTONIC, PREFLIGHT_LIMIT_USEC, 0, on_preflight_limit, device);
        if (r >= 0)
                return;
        drop_process(device);
        refuse(device, REASON_NONE, strerror(-r));
}

void device_preflight_give_up(struct managed_device *device)
{
        if (!device->preflight.then)
                return;
        worker_proc_kill(device->preflight.worker);
        conclude(device, -ECONNRESET);
}

const char *device_preflight_refusal(const struct managed_device *device, const struct device_record *record,
        enum condition_reason *ret_reason)
{
        bool reported =
                device->preflight.refused == record->restart || record->restart_refused == record->restart;
        bool refused = reported && device->process.worker
                       && worker_proc_restart(device->process.worker) != record->restart;

        if (!refused)
                return NULL;
        if (ret_reason)
                *ret_reason = device->preflight.reason;
        return device->preflight.sentence ? device->preflight.sentence : "The events of the device say why.";
}
