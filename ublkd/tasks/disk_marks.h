/* SPDX-License-Identifier: MIT */
/* Marks in the runtime directory by which a service manager has a unit for each disk (units/ublk-disk@.path and
 * .service). live/NAME is there while the disk of NAME is in service; a worker that is replaced at once does not end
 * it. It holds a line "worker PID", and the path of each store of the disk, a line each; no path if the disk has none, if a
 * tenant names it, whose mounts may be others than those of the host, or if the path has no one line. failed/NAME is there
 * while the device cannot have its disk in service, and holds why: the cause of its last attempt, or else the message of its
 * status. While the driver is missing or does not answer, that is the problem of the host. Runs on the loop. */
#pragma once

#include "ublkd/runtime/runtime_dir.h"
#include "ublkd/store/device_store.h"

struct disk_marks;

/* Keep the marks up to date from now on. Marks of an earlier ublkd stay until the status of their device is known: also
 * those of disks whose records the database has lost, which are served. `store` and `dir` outlive it. Return 0 or
 * -errno. A mark that cannot be written is logged: disks are served without it. */
int disk_marks_new(struct device_store *store, struct runtime_dir *dir, struct disk_marks **ret);
/* Free it; the marks stay. NULL is fine. Return NULL. */
struct disk_marks *disk_marks_free(struct disk_marks *marks);
/* Write all marks again, into a runtime directory that was made again. NULL is fine. */
void disk_marks_rewrite(struct disk_marks *marks);
