/* SPDX-License-Identifier: MIT */
/* Notices when udev has gone through its rules for a disk of the ublk driver. It gives every new one to
 * root:disk in its own time, and where the rule in units/ is not installed, or knows another runtime
 * directory than ours, no other program corrects that. Without udev there is no news, and none is needed. */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

struct disk_watch;

/* /dev/ublkbN is there, and udev has gone through its rules for it; not called for an earlier disk of the same
 * number. Called from the loop. */
typedef void (*disk_watch_handler)(void *userdata, int number);

/* Create a watch. Return 0 or -errno. */
int disk_watch_new(sd_event *event, disk_watch_handler handler, void *userdata, struct disk_watch **ret);
/* Return whether udev is expected to go through the rule of ublkd for a disk that appears now: it runs, and has the rule.
 * NULL: false. */
bool disk_watch_has_udev(const struct disk_watch *watch);
/* Note that udev did not come in time: do not expect it until it does something again. */
void disk_watch_missed_udev(struct disk_watch *watch);
/* Free the watch. NULL is fine. Return NULL. */
struct disk_watch *disk_watch_free(struct disk_watch *watch);
