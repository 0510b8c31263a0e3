/* SPDX-License-Identifier: MIT */
/* How fast the kernel notices that a worker with all tags of a queue in flight is dead.
 *
 * A driver without a release hook on /dev/ublkcN (6.12: ublk_timeout() in ublk_drv.c) learns of a death from
 * the commands that the worker has waiting; when every tag is in flight there is none, and only the timeout
 * of a request makes it look: after 30 s, by default. For a worker that lives, a timeout merely starts the
 * timer again.
 *
 * The kernel may freeze the queue to set it (queue_attr_store() in block/blk-sysfs.c of 6.12): it waits for
 * all requests of the disk first and lets no other begin, and nothing can interrupt that. So a process apart sets it, and the
 * caller sees to it that the worker does not hold requests back meanwhile. */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

struct disk_timeout;

struct disk_timeout_options {
        const char *sys;        /* NULL: /sys; for tests */
        uint64_t patience_usec; /* for all disks of one process; 0: ten seconds */
        /* From the loop, once for the last disk_timeout_shorten() of a disk, which may be gone by now. error: 0: it is set;
         * -ETIMEDOUT: the kernel still waits for requests of the disk and sets it when those are done, or time was up before
         * it was asked; or another -errno. */
        void (*done)(void *userdata, int number, int error);
        void *userdata;
};

/* Create a setter of timeouts; `options` are copied. Return 0 or -errno. */
int disk_timeout_new(sd_event *event, const struct disk_timeout_options *options, struct disk_timeout **ret);
/* Free it. What is not set yet stays as it is. NULL is fine. Return NULL. */
struct disk_timeout *disk_timeout_free(struct disk_timeout *timeout);

/* Set /sys/block/ublkbN/queue/io_timeout to half a second if it is another, in a process that the loop starts
 * `delay` microseconds later at the latest. Return 0, and done() is called; or -errno. */
int disk_timeout_shorten(struct disk_timeout *timeout, int number, uint64_t delay);
