/* SPDX-License-Identifier: MIT */
/* Makes the kernel show the partitions that the table of a disk has, or none, without waiting for the disk.
 *
 * Short-lived processes do it, a few at a time for all disks. The first opens the disk, and then executes the program of
 * the confined reader of the table (partition_reader.h), which hands back numbers and nothing else. They are
 * checked here (partition_check.h). The second compares them with what the kernel shows and changes what differs
 * (disk_partitions.h). A process that takes too long is killed; one that cannot be killed holds up only its disk. */
#pragma once

#include "ublkd/partitions/disk_partitions.h"
#include "ublkd/partitions/partition_check.h"

#include <systemd/sd-event.h>

struct partition_scanner; /* what the scans of all disks share */
struct partition_scan;    /* of one disk */

struct partition_scanner_options {
        const char *program;                /* of the reader; outlives the scanner. NULL: this very program */
        struct disk_partitions_roots roots; /* zeroes: the host's */
        uint64_t patience_usec;             /* for each process; 0: 30 seconds */
        unsigned running_max;               /* disks that have a process at once; 0: 256. Others wait */
        /* Called once at most, also by partition_scanner_new(): no write to a disk, or not every one, is noticed
         * (-errno). A new table is then seen when the disk grows or ublkd starts. NULL: nothing waits for that. */
        void (*unwatched)(void *userdata, int error);
        void *userdata;
};

/* What came of a scan. */
struct partition_outcome {
        /* 0; -ETIMEDOUT: the disk did not answer in time; -EDEADLK: an earlier process hangs in the kernel; other -errno. */
        int error;
        bool cut_off; /* `error` came while partitions were changed: some may be missing. Else all stay as they were */
        enum partition_fault fault; /* of an entry of the table: it is not shown */
        uint32_t faulty;            /* the number of that entry */
        uint32_t changed;           /* how many partitions were added, grown or removed */
        uint32_t refused;           /* how many changes the kernel refused; 0: all is as in the table */
        uint32_t refused_number;    /* the first of them */
        int refusal;                /* its -errno; -EBUSY: it or one that it overlaps is open */
};

/* Create a scanner, whose options are copied; NULL: the defaults. Free it after all scans; NULL is fine. Return 0 or
 * -errno; NULL. Scans begin when the loop has nothing else to do. */
int partition_scanner_new(
        sd_event *event, const struct partition_scanner_options *options, struct partition_scanner **ret);
struct partition_scanner *partition_scanner_free(struct partition_scanner *scanner);

/* Called from the loop. */
struct partition_scan_events {
        /* A scan has ended; the next may begin. */
        void (*done)(void *userdata, const struct partition_outcome *outcome);
        /* No process of this disk is left. */
        void (*gone)(void *userdata);
        /* A program has closed the disk that it had open for writing, since the last scan began. */
        void (*written)(void *userdata);
        void *userdata;
};

/* Create the scan of a disk; nothing begins. Return 0 or -errno. Freeing it kills its processes; NULL is fine. Return
 * NULL. */
int partition_scan_new(struct partition_scanner *scanner, const struct partition_scan_events *events,
        struct partition_scan **ret);
struct partition_scan *partition_scan_free(struct partition_scan *scan);

/* Begin to show the partitions of /dev/ublkbN, or to show none. None may be under way. `done` is called later. */
void partition_scan_begin(struct partition_scan *scan, int number, bool shown);
/* Return whether one is under way. */
bool partition_scan_is_under_way(const struct partition_scan *scan);
/* Kill a scan under way; `done` is not called for it. */
void partition_scan_cancel(struct partition_scan *scan);
/* Return whether a process may still have the disk open. */
bool partition_scan_has_process(const struct partition_scan *scan);
