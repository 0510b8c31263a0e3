/* SPDX-License-Identifier: MIT */
/* Faults of the backing store that lose acknowledged data (proto/region_faults.h), seen from the device. */
#pragma once

#include "ublkd/proto/region_faults.h"
#include "ublkd/store/device_store.h"

struct managed_device;

/* Private to device_faults.c; zeroed it is empty. */
struct device_faults_seen {
        struct fault_report reports[_REGION_FAULT_MAX]; /* as read from its region last */
        uint32_t accepted_with; /* the restart whose accepted faults were noted in the region; 0: none */
};

/* Read the device's faults out of its region, and report the new ones, each once. */
void device_faults_read(struct managed_device *device);
/* The device is as wanted: read its faults. When it was disabled and its disk is gone, clear them, since the
 * next disk begins without. */
void device_faults_settle(struct managed_device *device, const struct device_record *record);
/* The administrator may accept faults with a restart: note that in the region, once for each restart. Nothing
 * is cleared before the next worker starts. */
void device_faults_accept(struct managed_device *device, const struct device_record *record);
/* The restart is refused: what was accepted with it is not accepted any more. */
void device_faults_refuse(struct managed_device *device);
/* There is no worker, and the next is about to be started: clear what was accepted. */
void device_faults_begin(struct managed_device *device, const struct device_record *record);
/* The numbers of the faults in force, for the status. */
void device_faults_tell(const struct managed_device *device, struct device_faults *ret);

/* For device_report.c. */
int device_faults_durable(const struct managed_device *device, const struct device_record *record,
        struct device_condition *ret);
int device_faults_whole(const struct managed_device *device, const struct device_record *record,
        struct device_condition *ret);
