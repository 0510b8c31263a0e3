/* SPDX-License-Identifier: MIT */
/* Looks whether the requests of a disk end. */
#include "ublkd/reconcile/worker/device_progress.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/parts/reconciler_queue.h"
#include "ublkd/reconcile/view/progress_condition.h"
#include "ublkd/reconcile/worker/device_price.h"
#include "ublkd/reconcile/worker/device_worker.h"
#include "ublkd/base/clock.h"
#include "ublkd/disks/disk_stat.h"
#include "ublkd/model/device_stats.h"
#include "ublkd/workers/worker_threads.h"

#include <stdlib.h>

/* ---- one look ---- */

static void take_queue(const struct queue_counts *counts, struct progress_queue *ret)
{
        uint64_t in_flight = 0;

        *ret = (struct progress_queue){.rounds = counts->rounds};
        for (unsigned i = 0; i < _STATS_OP_MAX; i++) {
                ret->ended += counts->ops[i].requests;
                in_flight += counts->ops[i].in_flight;
        }
        ret->at_store = in_flight > counts->held ? in_flight - counts->held : 0;
}

/* Make room for that many queues. what was known of another number of queues is dropped. */
static int size_memory(struct progress_memory *memory, unsigned count)
{
        if (memory->queues && memory->count == count)
                return 0;
        free(memory->queues);
        *memory = (struct progress_memory){.queues = calloc(count, sizeof(*memory->queues))};
        memory->count = memory->queues ? count : 0;
        return memory->queues ? 0 : -ENOMEM;
}

/* The caller frees ret->queues. */
static int look_at_region(const struct managed_device *device, struct progress_look *ret)
{
        _cleanup_close_ int fd = runtime_dir_open_region(device->env->config.runtime_dir, device->id.uid);
        _cleanup_device_stats_ struct device_stats *stats = NULL;
        int r = fd < 0 ? fd : device_stats_read(fd, &stats);

        if (r < 0)
                return r;
        ret->queues = calloc(stats->queue_count, sizeof(*ret->queues));
        if (!ret->queues)
                return -ENOMEM;
        ret->count = stats->queue_count;
        ret->full = stats->writes_waiting > 0;
        ret->held = ret->full || stats->total.held > 0;
        for (unsigned i = 0; i < ret->count; i++)
                take_queue(&stats->queues[i], &ret->queues[i]);
        return 0;
}

static int look(
        const struct managed_device *device, const struct device_record *record, struct progress_look *ret)
{
        const struct progress_places *places = device->env->config.progress_places;
        struct disk_stat stat;
        int r = disk_stat_read(places->sys, record->number, &stat);

        *ret = (struct progress_look){.at = monotonic_now()};
        if (r < 0)
                return r;
        ret->disk_ended = stat.ended;
        ret->disk_in_flight = stat.in_flight;
        r = worker_process_stopped(places->proc, worker_proc_pid(device->process.worker));
        if (r < 0)
                return r;
        ret->stopped = r > 0;
        return look_at_region(device, ret);
}

static enum progress judge(struct managed_device *device, struct progress_look *seen, uint64_t patience)
{
        struct progress_memory *memory = &device->progress.memory;

        if (progress_needs_threads(memory, seen, patience))
                (void)worker_threads_look(
                        device->env->config.progress_places->proc, /* else they stay unknown */
                        worker_proc_pid(device->process.worker), seen->queues, seen->count);
        return progress_judge(memory, seen, patience);
}

/* ---- what follows from it ---- */

/* Return the time of the last end, on the clock of the user. */
static uint64_t still_since(const struct progress_memory *memory)
{
        uint64_t since = memory->disk_since, now = monotonic_now();

        if (memory->stopped_since > 0 && (since == 0 || memory->stopped_since < since))
                since = memory->stopped_since;
        for (unsigned i = 0; i < memory->count; i++) {
                uint64_t of_queue = memory->queues[i].since;

                if (of_queue > 0 && (since == 0 || of_queue < since))
                        since = of_queue;
        }
        return clock_usec(CLOCK_REALTIME) - (since > 0 ? now - since : 0);
}

static void show(struct managed_device *device, enum progress progress)
{
        static const char *const causes[_PROGRESS_MAX] = {
                [PROGRESS_SLOW] = "Requests have waited for the backing store",
                [PROGRESS_STARVED] = "Requests have waited for a worker that gets no CPU",
                [PROGRESS_STOPPED] = "The worker has been stopped",
                [PROGRESS_SPINS] = "Requests have waited for a worker that spins",
                [PROGRESS_LOST] = "Requests have waited that the worker does not know of",
        };
        enum condition_reason before = progress_reason(device->progress.shown),
                              reason = progress_reason(progress);

        if (progress == PROGRESS_UNSURE || reason == before)
                return;
        device->progress.shown = progress;
        device->progress.shown_since = still_since(&device->progress.memory);
        if (reason == REASON_NONE)
                device_emit(device, EVENT_NORMAL, REASON_PROGRESS_RESUMED, "Requests of the disk end again.");
        else
                device_emit(device, EVENT_WARNING, reason, "%s for recovery.hangAfter.", causes[progress]);
        device_wake(device);
}

static enum worker_kill kill_of(enum progress progress)
{
        return progress == PROGRESS_STOPPED ? KILL_STOPPED
               : progress == PROGRESS_SPINS ? KILL_SPINNING
                                            : KILL_UNAWARE;
}

/* Return whether a worker was killed already for not knowing of the same requests. */
static bool is_unaware_again(const struct managed_device *device, enum progress progress)
{
        return progress == PROGRESS_LOST && device->progress.was_unaware
               && device->progress.unaware_ended == device->progress.memory.disk_ended;
}

static bool is_worth_a_kill(const struct managed_device *device, const struct device_record *record)
{
        const struct progress_price price = device_price_of_death(device, record);

        return progress_kill_is_worth(&price, &device->progress.memory);
}

static void act(struct managed_device *device, const struct device_record *record, enum progress progress)
{
        if (!progress_calls_for_kill(progress) || is_unaware_again(device, progress)
                || !is_worth_a_kill(device, record)) {
                show(device, progress);
                return;
        }
        device->progress.was_unaware = progress == PROGRESS_LOST;
        device->progress.unaware_ended = device->progress.memory.disk_ended;
        device_kill_worker(device, kill_of(progress));
        device_progress_end(device);
        device_wake(device);
}

/* ---- when ---- */

/* The same for a device each time: FNV-1a. */
static uint32_t spread_of(const char *uid)
{
        uint32_t hash = 2166136261;

        for (; *uid; uid++)
                hash = (hash ^ (unsigned char)*uid) * 16777619;
        return hash;
}

static bool set_timer(struct managed_device *device, uint64_t at, uint64_t patience)
{
        device->progress.patience = patience;
        return sd_event_source_set_time(device->progress.timer, at) >= 0
               && sd_event_source_set_enabled(device->progress.timer, SD_EVENT_ONESHOT) >= 0;
}

/* A look that comes too late for another patience comes earlier; one that comes too early does no harm. */
static void follow_patience(struct managed_device *device, uint64_t patience)
{
        uint64_t at = progress_first(spread_of(device->id.uid), monotonic_now(), patience), set = 0;

        if (device->progress.patience == patience)
                return;
        if (sd_event_source_get_time(device->progress.timer, &set) < 0 || set > at)
                set = at;
        (void)set_timer(device, set, patience);
}

static uint64_t patience_of(const struct device_record *record)
{
        return record && record->spec ? record->spec->options.recovery.hang_after : 0;
}

static int on_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct managed_device *device = userdata;
        const struct device_record *record = device_store_get(device->env->config.store, device->id.name);
        uint64_t patience = patience_of(record);
        enum progress progress = PROGRESS_MADE;
        struct progress_look seen = {};

        if (patience == 0)
                device_progress_end(device);
        if (!device->progress.watched)
                return 0;
        /* Without an answer (the disk or the process is just going) the next look sees. */
        if (device->process.state == WORKER_HELD && look(device, record, &seen) >= 0
                && size_memory(&device->progress.memory, seen.count) >= 0) {
                progress = judge(device, &seen, patience);
                act(device, record, progress);
        }
        free(seen.queues);
        if (device->progress.watched)
                (void)set_timer(device, progress_next(progress, monotonic_now(), patience), patience);
        return 0;
}

void device_progress_watch(struct managed_device *device, const struct device_record *record)
{
        uint64_t patience = patience_of(record);
        int r = 0;

        if (!device->env->config.progress_places)
                return;
        if (patience == 0) {
                device_progress_end(device);
                return;
        }
        if (device->progress.watched) {
                follow_patience(device, patience);
                return;
        }
        if (!device->progress.timer)
                r = sd_event_add_time(device->env->config.event, &device->progress.timer, CLOCK_MONOTONIC, 0,
                        0, on_timer, device);
        if (r >= 0
                && set_timer(device, progress_first(spread_of(device->id.uid), monotonic_now(), patience),
                        patience))
                device->progress.watched = true; /* else the next turn tries again */
}

void device_progress_end(struct managed_device *device)
{
        struct device_progress *progress = &device->progress;

        if (!progress->watched)
                return;
        progress->watched = false;
        (void)sd_event_source_set_enabled(progress->timer, SD_EVENT_OFF);
        free(progress->memory.queues);
        progress->memory = (struct progress_memory){};
        progress->shown = PROGRESS_MADE;
}

void device_progress_drop(struct managed_device *device)
{
        sd_event_source_disable_unref(device->progress.timer);
        free(device->progress.memory.queues);
}

int device_progress_condition(const struct managed_device *device,
        const struct device_record *record _unused_, struct device_condition *ret)
{
        return progress_condition(device->progress.shown, device->progress.shown_since, ret);
}
