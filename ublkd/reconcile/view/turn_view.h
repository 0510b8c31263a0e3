/* SPDX-License-Identifier: MIT */
/* PURE: what a turn has seen of a device: the kernel's disk and the worker. */
#pragma once

#include "ublkd/driver/ublk_ctl.h"
#include "ublkd/plan/plan.h"
#include "ublkd/reconcile/view/device_geometry.h"
#include "ublkd/store/device_store.h"

/* Only device_turn.c writes it, at the beginning of a turn, but device_add.c clears `foreign` when it takes
 * another number. Without an answer of the kernel, it is the view of the turn before with the new facts of
 * the worker. */
struct turn_view {
        struct plan_facts facts;
        enum plan_worker worker_seen; /* when ublkd asked the kernel */
        struct kernel_device kernel;  /* meaningful unless facts.kernel is KERNEL_ABSENT */
        struct device_geometry geometry;
        bool foreign; /* another server's disk has the number of the device */
};

/* Rebuild the view of the device of `record`. kernel: the answer, NULL: no such disk. turn_view_measure() follows. */
void turn_view_see(
        struct turn_view *view, const struct device_record *record, const struct kernel_device *kernel);
/* Rebuild the view as turn_view_see(), without an answer of the kernel: the facts of the disk stay. */
void turn_view_stay(struct turn_view *view);

/* Return the number of the disk that has a size; -1: there is none. */
int turn_view_disk(const struct turn_view *view);
/* Return whether the device is disabled and its disk is gone: what went wrong with it is history. */
bool turn_view_is_off(const struct turn_view *view, const struct device_record *record);
/* Take the size of the disk, but for `wanted`, which is worked out here. params: of the worker, or NULL. */
void turn_view_measure(struct turn_view *view, const struct device_record *record,
        const struct disk_params *params, const struct device_geometry *disk);
