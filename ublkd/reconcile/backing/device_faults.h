/* SPDX-License-Identifier: MIT */
/* Reports the faults of a backing store that lose acknowledged data (proto/region_faults.h), and clears accepted
 * ones. */
#pragma once

#include "ublkd/proto/region_faults.h"
#include "ublkd/reconcile/parts/device_faults_part.h"
#include "ublkd/store/device_store.h"

struct managed_device;

/* Read the device's faults out of its region, and report the new ones, each once. */
void device_faults_read(struct managed_device *device);
/* Latch the cut that a preflight worker has found, and report it. uid: of the worker's own region. */
void device_faults_take_cut(
        struct managed_device *device, const struct device_record *record, const char *uid);
/* Read the faults of a device that is as wanted. Clear them if it is disabled and its disk is removed: the next disk
 * begins without faults. */
void device_faults_settle(struct managed_device *device, const struct device_record *record);
/* Write the faults that the administrator accepts with a restart into the region, once for each restart. They are
 * cleared when the next worker starts. */
void device_faults_accept(struct managed_device *device, const struct device_record *record);
/* Undo the acceptance of faults: the restart was refused. */
void device_faults_refuse(struct managed_device *device, const struct device_record *record);
/* Clear the accepted faults, without a worker and before the next one starts. */
void device_faults_begin(struct managed_device *device, const struct device_record *record);
/* Create the region of the next worker, if a process has removed or damaged it while faults are latched, and write
 * them into it: the disk goes on failing requests. Return 0 or -errno; on failure start no worker. */
int device_faults_carry(struct managed_device *device, const struct device_region_key *key);
/* Return the numbers of the faults in force, for the status. */
void device_faults_list(const struct managed_device *device, struct device_faults *ret);

/* Write the condition for device_publish.c, or leave *ret untouched if there is nothing to report. Return 0 or -ENOMEM. */
int device_faults_durable(const struct managed_device *device, const struct device_record *record,
        struct device_condition *ret);
int device_faults_whole(const struct managed_device *device, const struct device_record *record,
        struct device_condition *ret);
