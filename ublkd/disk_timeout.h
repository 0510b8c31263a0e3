/* How fast the kernel notices that a worker with all tags of a queue in flight is dead.
 *
 * A driver without a release hook on /dev/ublkcN (6.12: ublk_timeout() in ublk_drv.c) learns of a death from
 * the commands that the worker has waiting; when every tag is in flight there is none, and only the timeout
 * of a request makes it look: after 30 s, by default. For a worker that lives, a timeout merely starts the
 * timer again. */
#pragma once

/* Sets /sys/block/ublkbN/queue/io_timeout to half a second. 0 or -errno. */
int disk_timeout_shorten(int number);
