/* SPDX-License-Identifier: MIT */
/* ublk devices of the kernel that belong to no record here: what each is, and what to do about it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
        FOREIGN_PROCESS_SIZE = 96,
        FOREIGN_DETAIL_SIZE = 640,
        FOREIGN_DISKS_MAX = 256, /* that are told */
};

enum foreign_maker {
        FOREIGN_BY_UBLKD, /* with another database than ours */
        FOREIGN_BY_OTHER, /* by another ublk server */
        _FOREIGN_MAKER_MAX
};

/* The process that serves a disk. */
struct foreign_server {
        pid_t pid;                          /* 0: none */
        bool is_ublkd;                      /* a worker of ublkd */
        bool managed;                       /* by a ublkd that runs */
        char process[FOREIGN_PROCESS_SIZE]; /* "ublkd-worker data", or its command; "" with pid 0 */
};

struct foreign_disk {
        int number;
        uint64_t cookie;
        const char *state; /* "live", "quiesced", "failing" or "added" */
        enum foreign_maker maker;
        pid_t server_pid; /* that the driver says; it may be dead, and its number somebody else's */
        bool looked;      /* at the process: `server` is known */
        struct foreign_server server;
        bool has_record; /* in the runtime directory of this ublkd */
        bool held;       /* a record here is older than it: that record's status tells of it */
        bool is_new;     /* it was not there, or not so, when they were looked for last */
        char detail[FOREIGN_DETAIL_SIZE]; /* what it is and what to do: sentences */
};

/* Zero-initialise. */
struct foreign_disks {
        struct foreign_disk *items;
        size_t count;
};

struct kernel_device;

/* What the driver tells of it. Its process, if it has one, was not looked at. */
struct foreign_disk foreign_disk_of(const struct kernel_device *kernel);
/* Looks at a process, under `proc` ("/proc"), which can hang behind it: see apart.h. */
struct foreign_server foreign_server_look(const char *proc, pid_t pid);
/* Says it in words. `server`: NULL: it could not be looked at, and is not known. `name`: of the device whose
 * record is in the runtime directory, or NULL. */
void foreign_disk_describe(struct foreign_disk *disk, const struct foreign_server *server, const char *name);
const char *foreign_maker_to_string(enum foreign_maker maker);
/* The process that serves it, as far as that is known; 0: none. */
pid_t foreign_disk_server(const struct foreign_disk *disk);
/* Something is wrong with it, as opposed to that it is there, or that it is not known. */
bool foreign_disk_is_problem(const struct foreign_disk *disk);

/* Copies; more than the maximum is left out. 0 or -ENOMEM. */
int foreign_disks_add(struct foreign_disks *disks, const struct foreign_disk *disk);
/* The same one among them, or NULL. */
const struct foreign_disk *foreign_disks_find(
        const struct foreign_disks *disks, const struct foreign_disk *disk);
/* Whether the same one is among them, and is managed or not as this one is: a worker may learn late that its
 * ublkd is gone. */
bool foreign_disks_contain(const struct foreign_disks *disks, const struct foreign_disk *disk);
void foreign_disks_clear(struct foreign_disks *disks);
