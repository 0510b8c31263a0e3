/* SPDX-License-Identifier: MIT */
/* Notices when a program closes a disk that it had open for writing: it may have written a partition table. The kernel
 * reports that of a node to every program that asks (inotify); udev need not run. */
#pragma once

#include <systemd/sd-event.h>

struct disk_writes;

/* Called from the loop, with the owner of the watch. */
typedef void (*disk_written)(void *owner);

/* Create the watches. Return 0 or -errno; -EMFILE: the user has no instance of inotify left. Free them; NULL is fine.
 * Return NULL. */
int disk_writes_new(sd_event *event, disk_written written, struct disk_writes **ret);
struct disk_writes *disk_writes_free(struct disk_writes *writes);

/* Watch a node for its owner, which has one watch at most. A watch ends with its node, and before it reports a write: watch
 * again, and look at the disk after that. Return 0 or -errno. */
int disk_writes_watch(struct disk_writes *writes, const char *path, void *owner);
/* End the watch of the owner, if there is one. writes: NULL is fine. */
void disk_writes_leave(struct disk_writes *writes, const void *owner);
