/* SPDX-License-Identifier: MIT */
/* The control group of a device's worker. */
#include "ublkd/reconcile/worker/device_group.h"
#include "ublkd/reconcile/backing/device_claim.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/parts/reconciler_queue.h"
#include "ublkd/reconcile/view/resources_condition.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/disks/disk_whole.h"

#include <string.h>
#include <sys/sysmacros.h>

enum {
        CALM_USEC = 1000 * 1000, /* other disks may be in a recovery, too */
        RETRY_USEC = 30 * 1000 * 1000,
        RENEW_USEC = 300 * 1000
                     * 1000, /* another program, or systemd with a stop of the unit, may have undone them */
};

/* ---- what is wanted ---- */

/* The first store of the claims that lies on a block device: the one that the spec names, or for an overlay the file
 * below. A partition has no limits of its own. */
static dev_t find_disk(const struct managed_device *device)
{
        const struct progress_places *places = device->env->config.progress_places;
        const struct backing_claims *claims = device_claim_written(device);
        unsigned device_major, device_minor;
        dev_t disk;

        for (size_t i = 0; places && claims && i < claims->count; i++)
                if (backing_key_device(claims->items[i].key, &device_major, &device_minor)
                        && disk_whole(places->sys, makedev(device_major, device_minor), &disk) >= 0)
                        return disk;
        return 0;
}

static struct group_limits limits_of(const struct device_spec *spec)
{
        const struct device_options *options = spec ? &spec->options : NULL;

        if (!options)
                return (struct group_limits){};
        return (struct group_limits){
                .cpu_weight = (uint64_t)options->resources.cpu_weight,
                .memory_max = options->resources.memory_max,
                .pids_max = (uint64_t)options->resources.pids_max,
                .io = {.read_bytes = options->resources.io_max.read.bytes_per_sec,
                       .read_ios = (uint64_t)options->resources.io_max.read.iops,
                       .write_bytes = options->resources.io_max.write.bytes_per_sec,
                       .write_ios = (uint64_t)options->resources.io_max.write.iops},
        };
}

struct group_limits device_group_bounds(struct managed_device *device, const struct device_spec *spec)
{
        struct group_limits limits = limits_of(spec);

        device->group.has_start = device->group.has_start || group_limits_bound(&limits);
        return limits;
}

/* ---- asking, and the answer ---- */

static bool set_timer(struct managed_device *device, uint64_t delay)
{
        return sd_event_source_set_time_relative(device->group.timer, delay) >= 0
               && sd_event_source_set_enabled(device->group.timer, SD_EVENT_ONESHOT) >= 0;
}

/* An event when limits are not in force, once, and when they are in force again. */
static void report(struct managed_device *device)
{
        enum condition_reason before = device->group.shown,
                              reason = group_limits_any(&device->group.asked)
                                               ? resources_reason(&device->group.result)
                                               : REASON_NONE;

        device->group.shown = reason;
        if (reason == REASON_RESOURCES_NOT_IN_FORCE && before != reason)
                device_emit(device, EVENT_WARNING, reason,
                        "Not all limits in resources are in force; the condition Resources says why. The "
                        "disk is "
                        "served all the same, and ublkd tries again every 30 s.");
        if (reason == REASON_RESOURCES_IN_FORCE && before == REASON_RESOURCES_NOT_IN_FORCE)
                device_emit(device, EVENT_NORMAL, reason, "All limits in resources are in force again.");
        if (reason != REASON_NONE || before != REASON_NONE || device->group.result.leftover < 0)
                device_wake(device); /* the status shows it */
}

/* A worker without limits that has no group is as well off without one. */
static void plan_next(struct managed_device *device)
{
        bool in_force = resources_reason(&device->group.result) == REASON_RESOURCES_IN_FORCE;

        if (group_limits_any(&device->group.asked) || device->group.result.leftover < 0)
                (void)set_timer(
                        device, in_force ? RENEW_USEC : RETRY_USEC); /* else a change of the spec does it */
}

/* What the OOM killer has done in the start group since the last look: it counts for all workers that were there. Return
 * whether it has killed one; false if unknown. */
static bool look_at_start(struct managed_device *device)
{
        _cleanup_close_ int events =
                worker_groups_open_start_events(device->env->config.worker_groups, device->id.uid);
        int before = device->group.start_kills, kills = worker_groups_oom_kills(events);

        device->group.start_kills = kills < 0 ? 0 : kills;
        return kills > 0 && kills != before;
}

static void drop_start(struct managed_device *device)
{
        if (device->group.has_start && device->env->config.worker_groups)
                worker_groups_drop_start(device->env->config.worker_groups, device->id.uid);
        device->group.has_start = false;
        device->group.start_kills = 0;
}

static void drop_answer(struct device_group *group)
{
        if (group->answered && group->events >= 0)
                close_fd(group->events);
        group->answered = false;
}

static void on_answer(void *userdata, const struct group_result *result)
{
        struct managed_device *device = userdata;

        device->group.request = group_request_free(device->group.request);
        drop_answer(&device->group);
        device->group.result = *result;
        device->group.events =
                worker_groups_open_events(device->env->config.worker_groups, device->group.pid);
        device->group.answered = true;
        if (device->group.has_start)
                (void)look_at_start(device);
        if (!group_limits_any(&device->group.asked))
                drop_start(device);
        plan_next(device);
        report(device);
}

static int on_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct managed_device *device = userdata;
        const struct worker_proc *worker = device->process.worker;
        bool limited;

        if (device->process.state != WORKER_HELD || worker_proc_pid(worker) != device->group.pid
                || worker_proc_death(worker))
                return 0;
        limited = group_limits_any(&device->group.asked);
        device->group.has_start = device->group.has_start || limited;
        device->group.request = group_request_free(device->group.request);
        if (worker_groups_hold(device->env->config.worker_groups, device->group.pid,
                    worker_proc_pidfd(worker), limited ? device->id.uid : NULL, &device->group.asked,
                    on_answer, device, &device->group.request)
                < 0)
                (void)set_timer(device, RETRY_USEC);
        return 0;
}

static bool has_timer(struct managed_device *device)
{
        return device->group.timer
               || sd_event_add_time(device->env->config.event, &device->group.timer, CLOCK_MONOTONIC,
                          UINT64_MAX, 0, on_timer, device)
                          >= 0;
}

/* ---- from above ---- */

void device_group_follow(struct managed_device *device, const struct device_record *record)
{
        struct device_group *group = &device->group;
        struct group_limits wanted = limits_of(record->spec);
        pid_t pid = worker_proc_pid(device->process.worker);

        if (!device->env->config.worker_groups || !has_timer(device))
                return;
        if (group_limit_is_set(&wanted, GROUP_IO_MAX))
                wanted.disk = find_disk(device);
        if (group->pid == pid && group_limits_equal(&group->asked, &wanted))
                return;
        if (!set_timer(device, group->pid == pid ? 0 : CALM_USEC))
                return; /* the next turn tries again */
        group->request = group_request_free(group->request);
        group->pid = pid;
        group->asked = wanted;
        drop_answer(group);
}

bool device_group_oom_killed(struct managed_device *device)
{
        const struct worker_groups *groups = device->env->config.worker_groups;
        const struct device_group *group = &device->group;
        pid_t pid = worker_proc_pid(device->process.worker);
        _cleanup_close_ int opened = -1;

        if (!groups)
                return false;
        if (group->answered && group->pid == pid && group->events >= 0)
                return worker_groups_oom_kills(group->events) > 0;
        opened = worker_groups_open_events(groups, pid);
        if (opened >= 0 || !group->has_start)
                return worker_groups_oom_kills(opened) > 0;
        return look_at_start(device); /* it had no group of its own yet */
}

void device_group_end_preflight(struct managed_device *device, const char *uid)
{
        if (device->env->config.worker_groups)
                worker_groups_drop_start(device->env->config.worker_groups, uid);
}

void device_group_remove(struct managed_device *device)
{
        drop_start(device);
}

void device_group_end(struct managed_device *device)
{
        struct device_group *group = &device->group;

        if (!device->env->config.worker_groups)
                return;
        if (group->timer)
                (void)sd_event_source_set_enabled(group->timer, SD_EVENT_OFF);
        group->request = group_request_free(group->request);
        group->pid = 0;
        drop_answer(group);
        worker_groups_end(device->env->config.worker_groups, worker_proc_pid(device->process.worker));
}

void device_group_drop(struct managed_device *device)
{
        group_request_free(device->group.request);
        drop_answer(&device->group);
        sd_event_source_disable_unref(device->group.timer);
}

/* The answer is about the limits of another spec until the timer has fired. */
static bool is_current(const struct managed_device *device, const struct group_limits *wanted)
{
        struct group_limits numbers = device->group.asked;

        numbers.disk = wanted->disk;
        return device->group.answered && group_limits_equal(&numbers, wanted);
}

int device_group_condition(
        const struct managed_device *device, const struct device_record *record, struct device_condition *ret)
{
        static const struct group_result unavailable = {.trouble = GROUP_UNAVAILABLE};
        struct group_limits wanted = limits_of(record->spec);

        if (!device->env->config.worker_groups)
                return resources_condition(&wanted, &unavailable, ret);
        return resources_condition(&wanted, is_current(device, &wanted) ? &device->group.result : NULL, ret);
}
