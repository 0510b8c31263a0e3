/* SPDX-License-Identifier: MIT */
/* Hears when udev has gone through its rules for a disk of the ublk driver. It gives every new one to
 * root:disk in its own time, and where the rule in units/ is not installed, or knows another runtime
 * directory than ours, no other program corrects that. Without udev there is no news, and none is needed. */
#pragma once

#include <systemd/sd-event.h>

struct disk_watch;

/* /dev/ublkbN is there, and udev is done with it for now. Called from the loop. */
typedef void (*disk_watch_handler)(void *userdata, int number);

/* Create a watch. Return 0 or -errno. */
int disk_watch_new(sd_event *event, disk_watch_handler handler, void *userdata, struct disk_watch **ret);
/* Free the watch. NULL is fine. Return NULL. */
struct disk_watch *disk_watch_free(struct disk_watch *watch);
