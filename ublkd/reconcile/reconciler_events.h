/* SPDX-License-Identifier: MIT */
/* What other rooms have seen of a disk, by its number. */
#pragma once

struct reconciler;

/* Udev has been at /dev/ublkbN: if that is the disk of a device, it gets its owner and mode again. */
void reconciler_disk_changed(struct reconciler *reconciler, int number);
/* The timeout of /dev/ublkbN could not be set: report that for the device whose disk that is. */
void reconciler_timeout_failed(struct reconciler *reconciler, int number, int error);
/* A ublk_ctl_released; userdata is the reconciler. A command that was given up is out of the way: the device that
 * waited for that goes on. */
void reconciler_number_released(void *userdata, int number);
