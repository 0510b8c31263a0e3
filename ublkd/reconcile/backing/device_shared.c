/* SPDX-License-Identifier: MIT */
/* The region that a device's workers share with the supervisor: what the supervisor writes into it. */
#include "ublkd/reconcile/backing/device_shared.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/device_reports.h"
#include "ublkd/reconcile/backing/device_space.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/proto/region_target.h"

#include "ublkd/base/clock.h"

#include <string.h>

enum { LOSS_QUIET_USEC = 60 * 1000 * 1000 };

static struct region_limits limits_of(const struct io_limits *limits)
{
        return (struct region_limits){
                .per_second = {[REGION_BUCKET_REQUESTS] = (uint64_t)limits->iops,
                               [REGION_BUCKET_BYTES] = limits->bytes_per_sec      },
                .burst = {[REGION_BUCKET_REQUESTS] = (uint64_t)limits->iops_burst,
                               [REGION_BUCKET_BYTES] = limits->bytes_per_sec_burst},
        };
}

/* Return 1 if a value changed; 0, also without a region or with one of an older worker: the next worker gets one; or
 * -errno. */
static int set_values(int fd, const struct region_values *values)
{
        int r = fd < 0 ? fd : device_region_set_values(fd, values);

        return r == -ENOENT || r == -ENODATA || r == -EPROTO ? 0 : r;
}

/* What the target of the worker follows while it serves. */
static void apply_target(struct managed_device *device, int fd, const struct device_record *record)
{
        int node = target_tree_live_node(record->spec->tree);
        const struct target_node *live = &record->spec->tree->nodes[node < 0 ? 0 : node];
        unsigned char options[TARGET_LIVE_MAX];
        int r;

        if (node < 0)
                return;
        r = fd < 0 ? fd
                   : region_target_set_options(fd, options, live->desc->pack_live(live->options, options));
        if (r < 0 && r != -ENOENT && r != -ENODATA && r != -EPROTO)
                device_emit(device, EVENT_WARNING, REASON_LIMITS_NOT_SET,
                        "The options of the target cannot be passed to the worker: %s; ublkd retries at the "
                        "next change of the device.",
                        strerror(-r));
}

void device_shared_apply(struct managed_device *device, const struct device_record *record)
{
        const struct device_options *options = &record->spec->options;
        struct region_values values = {.busy_poll_us = (uint64_t)options->busy_poll_us};
        _cleanup_close_ int fd = runtime_dir_open_region(device->env->config.runtime_dir, device->id.uid);
        int r;

        if (!timeout_is_coming(&device->timeout)) {
                values.limits[REGION_READ] = limits_of(&options->limits.read);
                values.limits[REGION_WRITE] = limits_of(&options->limits.write);
        }
        r = set_values(fd, &values);
        if (r < 0)
                device_emit(device, EVENT_WARNING, REASON_LIMITS_NOT_SET,
                        "The limits and busyPollUs cannot be passed to the worker: %s; ublkd retries at the "
                        "next change of the device.",
                        strerror(-r));
        apply_target(device, fd, record);
        device_space_apply(device, fd, record);
}

void device_shared_lift(struct managed_device *device)
{
        _cleanup_close_ int fd = runtime_dir_open_region(device->env->config.runtime_dir, device->id.uid);
        int r = set_values(fd, &(struct region_values){});

        if (r < 0)
                device_emit(device, EVENT_WARNING, REASON_LIMITS_NOT_LIFTED,
                        "The limits cannot be lifted: %s; stopping the disk takes until all its I/O has "
                        "passed them.",
                        strerror(-r));
}

void device_shared_keep_history(const struct managed_device *device, const struct region_history *history)
{
        _cleanup_close_ int fd = runtime_dir_open_region(device->env->config.runtime_dir, device->id.uid);

        if (fd >= 0)
                (void)device_region_set_history(fd, history);
}

void device_shared_recall_history(const struct managed_device *device, struct region_history *ret)
{
        _cleanup_close_ int fd = runtime_dir_open_region(device->env->config.runtime_dir, device->id.uid);

        if (fd >= 0)
                (void)device_region_get_history(fd, ret);
}

void device_shared_count_restart(const struct managed_device *device, const struct target_tree *tree,
        const struct region_history *history)
{
        _cleanup_close_ int fd = -1;

        if (!target_tree_keeps(tree)) {
                device_shared_keep_history(device, history);
                return;
        }
        fd = runtime_dir_open_region(device->env->config.runtime_dir, device->id.uid);
        if (fd >= 0)
                (void)region_kept_count_restart(fd, history);
}

/* Where the region cannot be read, the next worker begins with zeroes. */
int device_shared_check_kept(struct managed_device *device, const struct target_tree *tree)
{
        _cleanup_close_ int fd = -1;

        if (!target_tree_keeps(tree))
                return 0;
        fd = runtime_dir_open_region(device->env->config.runtime_dir, device->id.uid);
        if (fd < 0 || region_kept_is_taken(fd) != 0)
                return 0;
        device_note(device, REASON_REGION_UNUSABLE,
                "The worker cannot serve: its program does not know of the memory that the target keeps for "
                "the "
                "disk; install the program of the workers in the version of ublkd.");
        return -EPROTO;
}

/* Make the event, then note it: if the supervisor dies in between, the next one reports it again. It does so as well if the
 * database does not get the event. A worker can write to all that is read here:
 * it gets one event in LOSS_QUIET_USEC. */
void device_shared_report_loss(struct managed_device *device, int fd)
{
        struct region_report report = {};
        uint64_t now = monotonic_now(), loss;
        enum event_fate fate;

        if (region_kept_has_new_loss(fd, &loss) != 1)
                return;
        if (region_report_read(fd, REGION_REPORT_KEPT, &report) < 0 || report.value != loss)
                report.revision = 0; /* of an earlier loss */
        fate = device_report_fate(
                device, fd, REGION_REPORT_KEPT, &report, EVENT_WARNING, REASON_KEPT_MEMORY_LOST);
        if (fate == EVENT_SAVED && region_kept_note_reported(fd) >= 0)
                (void)region_report_clear(fd, REGION_REPORT_KEPT);
        if (fate != EVENT_LOST || now < device->shared.loss_quiet_until)
                return;
        device_emit(device, EVENT_WARNING, REASON_KEPT_MEMORY_LOST,
                "The memory that the target kept for the disk is lost: it is gone, or of another version of "
                "the target than the next worker's; the worker starts without it, and flushes fail until the "
                "loss is accepted.");
        (void)device_report_note(device, fd, REGION_REPORT_KEPT, loss);
        device->shared.loss_quiet_until = now + LOSS_QUIET_USEC;
}

uint64_t device_shared_kept_bytes(const struct managed_device *device, const struct device_record *record)
{
        const struct target_tree *tree = record->spec ? record->spec->tree : NULL;
        _cleanup_close_ int fd = -1;
        uint64_t bytes = 0;

        if (!tree || !target_tree_keeps(tree))
                return 0; /* no system call with each status */
        fd = runtime_dir_open_region(device->env->config.runtime_dir, device->id.uid);
        return fd >= 0 && region_kept_read_bytes(fd, &bytes) >= 0 ? bytes : 0;
}

int device_keep_record(struct managed_device *device)
{
        const struct reconciler_config *config = &device->env->config;
        int r = config->record_keeper ? record_keeper_ensure(config->record_keeper, device->id.name) : 0;

        if (r < 0 && !device->shared.unkept)
                device_emit(device, EVENT_WARNING, REASON_RECORD_NOT_KEPT,
                        "The record cannot be written to %s: %s; if the database is lost, the disk cannot be "
                        "adopted. ublkd retries whenever it handles the device.",
                        runtime_dir_path(config->runtime_dir), strerror(-r));
        device->shared.unkept = r < 0;
        return r;
}

void device_shared_drop(struct managed_device *device)
{
        /* On failure the file stays until the reboot; no other device has its uid. */
        (void)runtime_dir_remove_region(device->env->config.runtime_dir, device->id.uid);
}
