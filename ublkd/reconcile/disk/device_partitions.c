/* SPDX-License-Identifier: MIT */
/* The partitions of a device's disk.
 *
 * A disk that is recovered keeps them, so nothing is read again then. A program that has written to a disk may have
 * written a new table: ublkd looks once it has closed the disk. It does so because the kernel does not read the tables of
 * these disks itself, not even when a program asks for that (BLKRRPART is EINVAL). */
#include "ublkd/reconcile/disk/device_partitions.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/parts/reconciler_queue.h"
#include "ublkd/reconcile/view/partitions_due.h"

#include "ublkd/base/clock.h"
#include "ublkd/base/sentence.h"

#include <string.h>

enum { LEAVE_USEC = 2 * 1000 * 1000 };

/* ---- what came of a scan ---- */

static const char *cause_of(int error)
{
        switch (error) {
        case -ETIMEDOUT:
                return "the disk has not answered in time";
        case -EDEADLK:
                return "an earlier attempt hangs in the kernel";
        case -EPIPE:
        case -EBADMSG:
                return "the process for it ended without a result";
        default:
                return strerror(-error);
        }
}

static int set_trouble(
        struct device_condition *trouble, int number, bool shown, const struct partition_outcome *outcome)
{
        if (outcome->cut_off)
                return device_condition_set(trouble, CONDITION_FALSE, REASON_PARTITIONS_UNKNOWN,
                        "Changing the partitions of /dev/ublkb%d failed: %s; some may be missing until ublkd "
                        "has "
                        "tried again.",
                        number, cause_of(outcome->error));
        if (outcome->error < 0)
                return device_condition_set(trouble, CONDITION_FALSE, REASON_PARTITIONS_UNKNOWN,
                        "%s /dev/ublkb%d failed: %s; partitions stay as they are, and ublkd tries again.",
                        shown ? "Reading the partition table of" : "Removing the partitions of", number,
                        cause_of(outcome->error));
        if (outcome->fault != PARTITION_GOOD)
                return device_condition_set(trouble, CONDITION_FALSE, REASON_PARTITION_INVALID,
                        "Showing partition %u of /dev/ublkb%d failed: it %s; correct the partition table "
                        "('sfdisk --verify /dev/ublkb%d').",
                        outcome->faulty, number, partition_fault_to_string(outcome->fault), number);
        if (outcome->refused > 0)
                return device_condition_set(trouble, CONDITION_FALSE, REASON_PARTITION_IN_USE,
                        "Changing partition %u of /dev/ublkb%d%s failed: %s; it stays as it was, and ublkd "
                        "tries again.",
                        outcome->refused_number, number, outcome->refused > 1 ? " and more" : "",
                        outcome->refusal == -EBUSY
                                ? "it, or a partition at its place, is in use; unmount or close it"
                                : strerror(-outcome->refusal));
        return 0;
}

/* Make an event before the condition becomes False, or gets another message. */
static void take_trouble(struct managed_device *device, const struct partition_outcome *outcome)
{
        struct device_condition trouble = {};
        struct device_partitions *partitions = &device->partitions;

        (void)set_trouble(&trouble, partitions->key.number, partitions->key.shown, outcome);
        if (trouble.message && !sentence_equal(trouble.message, partitions->trouble.message))
                device_emit(device, EVENT_WARNING, trouble.reason, "%s", trouble.message);
        free(partitions->trouble.message);
        partitions->trouble = trouble;
}

static enum partitions_result result_of(const struct partition_outcome *outcome)
{
        if (outcome->error < 0)
                return PARTITIONS_UNKNOWN;
        return outcome->refused > 0 ? PARTITIONS_REFUSED : PARTITIONS_SETTLED;
}

static void on_done(void *userdata, const struct partition_outcome *outcome)
{
        struct managed_device *device = userdata;
        struct device_partitions *partitions = &device->partitions;

        take_trouble(device, outcome);
        partitions_ended(&partitions->history, &partitions->key, result_of(outcome), monotonic_now());
        device_wake(device);
}

/* ---- leaving the disk ---- */

static void has_left(struct managed_device *device)
{
        void (*then)(struct managed_device *) = device->partitions.left;

        device->partitions.left = NULL;
        device->partitions.left_deadline = sd_event_source_disable_unref(device->partitions.left_deadline);
        if (then)
                then(device);
}

static void on_gone(void *userdata)
{
        has_left(userdata);
}

static int on_deadline(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        has_left(userdata);
        return 0;
}

void device_partitions_leave(struct managed_device *device, void (*then)(struct managed_device *device))
{
        struct device_partitions *partitions = &device->partitions;

        if (partitions->scan && partition_scan_is_under_way(partitions->scan)) {
                partition_scan_cancel(partitions->scan);
                partitions->history = (struct partitions_history){}; /* it is to be done again */
        }
        partitions->left = then;
        if (!partitions->scan || !partition_scan_has_process(partitions->scan)
                || sd_event_add_time_relative(device->env->config.event, &partitions->left_deadline,
                           CLOCK_MONOTONIC, LEAVE_USEC, 0, on_deadline, device)
                           < 0)
                has_left(device);
}

/* ---- turns ---- */

static void on_written(void *userdata)
{
        struct managed_device *device = userdata;

        device->partitions.changes++;
        device_wake(device);
}

static int begin(struct managed_device *device, const struct partitions_key *key)
{
        struct device_partitions *partitions = &device->partitions;
        int r = partitions->scan ? 0
                                 : partition_scan_new(device->env->config.partition_scanner,
                                           &(const struct partition_scan_events){.done = on_done,
                                                   .gone = on_gone,
                                                   .written = on_written,
                                                   .userdata = device},
                                           &partitions->scan);

        partitions->key = *key;
        if (r >= 0)
                partition_scan_begin(partitions->scan, key->number, key->shown);
        return r;
}

uint64_t device_partitions_follow(struct managed_device *device, const struct device_record *record)
{
        struct device_partitions *partitions = &device->partitions;
        const struct partitions_key key = {
                .cookie = device->view.kernel.cookie,
                .size = device->view.geometry.size,
                .changes = partitions->changes,
                .number = record->number,
                .shown = record->spec && record->spec->options.partitions,
        };
        uint64_t due;
        int r;

        if (!device->env->config.partition_scanner || !record->spec
                || (partitions->scan && partition_scan_is_under_way(partitions->scan)))
                return UINT64_MAX;
        due = partitions_due(&partitions->history, &key);
        if (due > monotonic_now())
                return due;
        r = begin(device, &key);
        if (r < 0)
                partitions_ended(&partitions->history, &key, PARTITIONS_UNKNOWN, monotonic_now());
        return r < 0 ? partitions_due(&partitions->history, &key) : UINT64_MAX;
}

void device_partitions_reset(struct managed_device *device)
{
        struct device_partitions *partitions = &device->partitions;

        if (partitions->scan && partition_scan_is_under_way(partitions->scan))
                partition_scan_cancel(partitions->scan);
        partitions->history = (struct partitions_history){};
        free(partitions->trouble.message);
        partitions->trouble = (struct device_condition){};
}

int device_partitions_condition(const struct managed_device *device,
        const struct device_record *record _unused_, struct device_condition *ret)
{
        const struct device_condition *trouble = &device->partitions.trouble;

        if (trouble->status == CONDITION_ABSENT)
                return 0;
        return device_condition_set(ret, trouble->status, trouble->reason, "%s", trouble->message);
}

void device_partitions_drop(struct managed_device *device)
{
        device_partitions_reset(device);
        device->partitions.scan = partition_scan_free(device->partitions.scan);
        device->partitions.left_deadline = sd_event_source_disable_unref(device->partitions.left_deadline);
}
