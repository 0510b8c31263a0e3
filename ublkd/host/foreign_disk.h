/* SPDX-License-Identifier: MIT */
/* ublk disks that belong to no record of this ublkd: what each is, and what an administrator can do. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
        FOREIGN_PROCESS_SIZE = 96,
        FOREIGN_DETAIL_SIZE = 640,
        FOREIGN_DISKS_MAX = 256, /* shown by GET /host */
};

enum foreign_maker {
        FOREIGN_BY_UBLKD, /* by a ublkd with another database */
        FOREIGN_BY_OTHER, /* by another ublk server */
        _FOREIGN_MAKER_MAX
};

/* The process that serves a disk. */
struct foreign_server {
        pid_t pid;                          /* 0: none */
        bool is_ublkd;                      /* a worker of ublkd */
        bool managed;                       /* by a running ublkd */
        char process[FOREIGN_PROCESS_SIZE]; /* "ublkd-worker data", or its command; "" with pid 0 */
};

struct foreign_disk {
        int number;
        uint64_t cookie;
        const char *state; /* "live", "quiesced", "failing" or "added" */
        enum foreign_maker maker;
        pid_t server_pid; /* from the driver; the process may be dead and another one may have the pid */
        bool looked;      /* the process was examined: `server` is valid */
        struct foreign_server server;
        bool has_record; /* in the runtime directory of this ublkd */
        bool held;       /* this ublkd has an older record, whose status describes the disk */
        bool is_new;     /* the last scan did not find it, or found another state */
        char detail[FOREIGN_DETAIL_SIZE]; /* sentences: what the disk is, and what to do */
};

/* Zero-initialise. */
struct foreign_disks {
        struct foreign_disk *items;
        size_t count;
};

struct kernel_device;

/* Return what the driver reports of a disk. Its process is not examined yet. */
struct foreign_disk foreign_disk_of(const struct kernel_device *kernel);
/* Examine a process below `proc` ("/proc"). This can hang behind that process: see apart.h. */
struct foreign_server foreign_server_look(const char *proc, pid_t pid);
/* Write disk->detail. server: NULL: the process could not be examined. name: of the device whose record is in
 * the runtime directory, or NULL. */
void foreign_disk_describe(struct foreign_disk *disk, const struct foreign_server *server, const char *name);
const char *foreign_maker_to_string(enum foreign_maker maker);
/* Return the process that serves the disk; 0: none, or unknown. */
pid_t foreign_disk_server(const struct foreign_disk *disk);
/* Return whether something is wrong with the disk; its existence, or missing knowledge, is not a problem. */
bool foreign_disk_is_problem(const struct foreign_disk *disk);

/* Add a copy of `disk`; ignore it above FOREIGN_DISKS_MAX. Return 0 or -ENOMEM. */
int foreign_disks_add(struct foreign_disks *disks, const struct foreign_disk *disk);
/* Return the entry of the same disk, or NULL. */
const struct foreign_disk *foreign_disks_find(
        const struct foreign_disks *disks, const struct foreign_disk *disk);
/* Return whether the list has the same disk with the same value of `managed`: a worker may notice late that its
 * ublkd has exited. */
bool foreign_disks_contain(const struct foreign_disks *disks, const struct foreign_disk *disk);
void foreign_disks_clear(struct foreign_disks *disks);
