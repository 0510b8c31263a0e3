/* SPDX-License-Identifier: MIT */
/* Which worker serves the disk, for the service manager (sd_notify(3)): 'systemctl status' of the disk's unit shows it. The
 * worker itself is in the control group of another unit. Without a service manager nothing is sent. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

struct served_by {
        int worker; /* a pidfd, which becomes readable when the worker ends; -1: it has ended, or none is known */
        pid_t pid;  /* 0: none is known */
        ino_t mark; /* the mark in which it was found, and when that was written */
        struct timespec written;
        char shown[320]; /* what was sent last */
        bool settled;    /* the worker is in the control group that it keeps */
        bool ready;      /* the service manager has it that the unit has started */
};

/* Report to the service manager that the unit has started. Waits until it has room for that. If that fails, each look
 * repeats it. */
void served_by_begin(struct served_by *served);
/* Look which worker the mark `path` of the disk has now, and send what has changed. Does not wait. */
void served_by_look(struct served_by *served, const char *path);
/* Send that the disk is about to be taken down. Does not wait. */
void served_by_end(struct served_by *served);
