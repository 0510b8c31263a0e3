/* SPDX-License-Identifier: MIT */
/* The node of a device's disk: its owner, mode and link. */
#pragma once

#include "ublkd/disks/disk_node.h"
#include "ublkd/reconcile/parts/device_node_part.h"
#include "ublkd/store/device_store.h"

struct managed_device;

/* Return owner, mode and link of the node, as the spec has them. The texts are those of the record. */
struct disk_node device_node_of(const struct managed_device *device, const struct device_record *record);
/* Announce owner, mode and link to udev, before the node appears. Return 1; 0: announced before; or
 * -errno. */
int device_announce_node(const struct managed_device *device, const struct device_record *record);
/* Set owner, mode and link of a live disk's node as in the spec, if they differ. */
void device_show_node(struct managed_device *device, const struct device_record *record);
/* Note that the disk is about to appear: its links and properties are there once udev has gone through its rules. If udev
 * removes an earlier disk of the same name meanwhile, it removes the link that is there, too. Without udev the disk does
 * not wait. */
void device_node_await_udev(struct managed_device *device);
/* Note that START_DEV or END_USER_RECOVERY has ended. udev may have gone through its rules before. */
void device_node_appeared(struct managed_device *device, bool success);
/* Note that udev has gone through its rules. Return false if the disk did not wait for it. */
bool device_node_udev_done(struct managed_device *device);
/* Return whether the disk waits for udev. */
bool device_node_awaits_udev(const struct managed_device *device);
/* Return until when the disk waits for udev, CLOCK_MONOTONIC; UINT64_MAX: it does not. After that time it does not
 * wait any more, which makes an event. */
uint64_t device_node_wait(struct managed_device *device, uint64_t now);
/* Set the node again in the next turn: a program may have changed it. Return false if it was not set yet. */
bool device_node_changed(struct managed_device *device);
/* Remove the announcement for a removed disk: another device may get its number. */
void device_hide_node(struct managed_device *device, const struct device_record *record);
