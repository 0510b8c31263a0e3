/* SPDX-License-Identifier: MIT */
/* Events of other rooms about a disk, by its number. */
#pragma once

struct reconciler;

/* Handle a uevent of /dev/ublkbN: if it is the disk of a device, set its owner and mode again. */
void reconciler_disk_changed(struct reconciler *reconciler, int number);
/* Note for the device with /dev/ublkbN that the timeout of its disk was set, or could not be. error: 0 or -errno. */
void reconciler_timeout_done(struct reconciler *reconciler, int number, int error);
/* Handle the begin or the end of swap on /dev/ublkbN: a swap_watch_handler; userdata is the reconciler. */
void reconciler_swap_changed(void *userdata, int number);
/* Continue the device that waited for a command that was given up and has returned: a ublk_ctl_released;
 * userdata is the reconciler. */
void reconciler_number_released(void *userdata, int number);
