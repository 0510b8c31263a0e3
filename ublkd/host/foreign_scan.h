/* SPDX-License-Identifier: MIT */
/* Finds the ublk devices of the kernel that belong to no record here. Nothing is ever done to them. Runs on
 * the supervisor's loop and never waits: a process apart looks at the processes that serve them. Of one that
 * cannot be looked at in time is told what was known of it before, or that it is not known. */
#pragma once

#include "ublkd/host/adoptable.h"
#include "ublkd/store/device_store.h"
#include "ublkd/host/foreign_disk.h"
#include "ublkd/driver/ublk_ctl.h"

struct foreign_scan;

struct foreign_scan_config {
        sd_event *event;
        const struct device_store *store;
        const struct adoptables *adoptable; /* whose records are in the runtime directory */
        struct foreign_disks *found;        /* replaced at the end of each scan */
        const char *folder;                 /* where the kernel lists them; NULL: /sys/class/ublk-char */
        const char *proc;                   /* NULL: /proc */
        uint64_t patience_usec;             /* for the looks at all their processes; 0: one second */
        /* At the end of each scan; not called from within foreign_scan_begin(). */
        void (*done)(void *userdata);
        void *userdata;
};

/* All pointers outlive the scan. 0 or -errno. */
int foreign_scan_new(const struct foreign_scan_config *config, struct foreign_scan **ret);
/* NULL is fine. */
struct foreign_scan *foreign_scan_free(struct foreign_scan *scan);

/* The control plane came, or (NULL) went: a scan that is under way then ends without having found anything.
 */
void foreign_scan_set_control(struct foreign_scan *scan, struct ublk_ctl *ctl);
/* Looks, unless it is looking. False: it is done already (there is nothing to ask about) or it cannot be
 * done, and `done` is not called. */
bool foreign_scan_begin(struct foreign_scan *scan);
