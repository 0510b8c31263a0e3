/* SPDX-License-Identifier: MIT */
/* The exit statuses of ublkctl, as ublkctl(1) documents them. */
#pragma once

enum exit_status {
        STATUS_OK = 0,
        STATUS_FAILED = 1,      /* the operation failed; `host`: found a problem */
        STATUS_USAGE = 2,       /* wrong command line */
        STATUS_NOT_FOUND = 3,   /* the device does not exist */
        STATUS_TIMED_OUT = 4,   /* not done in time; the request stays in force */
        STATUS_NO_DAEMON = 5,   /* ublkd does not answer */
        STATUS_NOT_ALLOWED = 6, /* the caller may not do this */
        STATUS_REFUSED = 7,     /* the device is in use, in the wrong state, or has changed meanwhile */
};

/* Merge the statuses of two operations: that of the failure; STATUS_FAILED if both failed differently. */
static inline enum exit_status exit_status_merge(enum exit_status one, enum exit_status other)
{
        if (one == STATUS_OK || one == other)
                return other;
        return other == STATUS_OK ? one : STATUS_FAILED;
}
