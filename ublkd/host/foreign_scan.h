/* SPDX-License-Identifier: MIT */
/* Finds the ublk disks that belong to no record of this ublkd; it does not change them. Runs on the supervisor's
 * loop and never waits: a separate process examines the servers of the disks. If it cannot examine a server in
 * time, the result of the last scan is shown, or that the server is unknown. */
#pragma once

#include "ublkd/host/adoptable.h"
#include "ublkd/store/device_store.h"
#include "ublkd/host/foreign_disk.h"
#include "ublkd/driver/ublk_ctl.h"

struct foreign_scan;

struct foreign_scan_config {
        sd_event *event;
        const struct device_store *store;
        const struct adoptables *adoptable; /* devices whose records are in the runtime directory */
        struct foreign_disks *found;        /* replaced at the end of each scan */
        const char *folder;                 /* where the kernel lists the disks; NULL: /sys/class/ublk-char */
        const char *proc;                   /* NULL: /proc */
        uint64_t patience_usec;             /* for examining all processes; 0: one second */
        /* Called at the end of each scan, but not by foreign_scan_begin() itself. */
        void (*done)(void *userdata);
        void *userdata;
};

/* Create a scan. All pointers of `config` outlive it. Return 0 or -errno. */
int foreign_scan_new(const struct foreign_scan_config *config, struct foreign_scan **ret);
/* Free the scan, also one under way. NULL is fine. Return NULL. */
struct foreign_scan *foreign_scan_free(struct foreign_scan *scan);

/* Set the control plane; NULL: there is none any more, and a scan under way ends without a result. */
void foreign_scan_set_control(struct foreign_scan *scan, struct ublk_ctl *ctl);
/* Begin a scan, unless one is under way. Return false if it has ended already (no number to ask about) or cannot
 * begin: then `done` is not called. */
bool foreign_scan_begin(struct foreign_scan *scan);
