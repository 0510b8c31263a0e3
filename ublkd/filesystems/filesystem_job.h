/* SPDX-License-Identifier: MIT */
/* The process that looks at a disk and has a file system made, as events of the loop. Nothing waits for it: at the
 * deadline it is killed, together with its program. */
#pragma once

#include "ublkd/filesystems/filesystem_wire.h"

#include <systemd/sd-event.h>

struct filesystem_jobs;
struct filesystem_job;

struct filesystem_limits {
        const char *program;    /* of the process; outlives the jobs. NULL: this very program */
        uint64_t patience_usec; /* for one job; 0: 120 s */
        unsigned
                running_max; /* processes at once; with those that were killed and are not dead, four times that; 0: 8 */
        const char *dev; /* where the disks are; NULL: "/dev" */
        const char *
                sys; /* where the kernel shows them; NULL: "/sys", or, with `dev`, nowhere: a disk is a file */
};

/* Called from the loop. None of them may free `jobs`. */
struct filesystem_job_events {
        /* The process has looked. Fill the task, after what is to be done was stored. */
        void (*looked)(void *userdata, const struct filesystem_look *look, struct filesystem_go *ret);
        /* The process has ended, or was killed. report: what came of the task; NULL: it was FILESYSTEM_LEAVES. Not called
         * after filesystem_jobs_free(). */
        void (*done)(void *userdata, const struct filesystem_report *report);
        void *userdata;
};

/* Prepare jobs. limits: NULL: the defaults. Return 0 or -errno. */
int filesystem_jobs_new(
        sd_event *event, const struct filesystem_limits *limits, struct filesystem_jobs **ret);
/* Kill what is under way, and free all. NULL is fine. Return NULL. */
struct filesystem_jobs *filesystem_jobs_free(struct filesystem_jobs *jobs);

/* Return how many processes may run at once. */
unsigned filesystem_jobs_running_max(const struct filesystem_jobs *jobs);
/* Begin. Return 0; -EBUSY: a process of an earlier job has this disk; -EAGAIN: too many jobs; other -errno. */
int filesystem_job_begin(struct filesystem_jobs *jobs, const struct filesystem_order *order,
        const struct filesystem_job_events *events);
