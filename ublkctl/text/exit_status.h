/* SPDX-License-Identifier: MIT */
/* What ublkctl says with its exit status. ublkctl(1) documents the same numbers. */
#pragma once

enum exit_status {
        STATUS_OK = 0,
        STATUS_FAILED = 1,      /* it could not be done; also: `host` found something wrong */
        STATUS_USAGE = 2,       /* the command line makes no sense */
        STATUS_NOT_FOUND = 3,   /* there is no such device */
        STATUS_TIMED_OUT = 4,   /* not done in the given time; the request stays in force */
        STATUS_NO_DAEMON = 5,   /* ublkd does not answer */
        STATUS_NOT_ALLOWED = 6, /* the caller may not do this */
        STATUS_REFUSED = 7,     /* the device is in use, in no state for it, or was changed meanwhile */
};

/* The status of two things done one after the other: that of the failure, STATUS_FAILED when they differ. */
static inline enum exit_status exit_status_merge(enum exit_status one, enum exit_status other)
{
        if (one == STATUS_OK || one == other)
                return other;
        return other == STATUS_OK ? one : STATUS_FAILED;
}
