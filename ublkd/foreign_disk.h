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

struct foreign_disk {
        int number;
        uint64_t cookie;
        const char *state; /* "live", "quiesced", "failing" or "added" */
        enum foreign_maker maker;
        bool managed;                       /* by another ublkd, which runs: nothing is wrong with it */
        bool is_new;                        /* it was not there, or not so, when they were looked for last */
        pid_t pid;                          /* of the process that serves it; 0: none */
        char process[FOREIGN_PROCESS_SIZE]; /* "ublkd-worker data", or its command; "" with pid 0 */
        char detail[FOREIGN_DETAIL_SIZE];   /* what it is and what to do: sentences */
};

/* Zero-initialise. */
struct foreign_disks {
        struct foreign_disk *items;
        size_t count;
};

struct kernel_device;

/* Looks at its process, under `proc` ("/proc"), and says it in words. */
struct foreign_disk foreign_disk_describe(const char *proc, const struct kernel_device *kernel);
const char *foreign_maker_to_string(enum foreign_maker maker);
/* Something is wrong with it, as opposed to that it is there. */
bool foreign_disk_is_problem(const struct foreign_disk *disk);

/* Copies; more than the maximum is left out. 0 or -ENOMEM. */
int foreign_disks_add(struct foreign_disks *disks, const struct foreign_disk *disk);
/* Whether the same one is among them, and is managed or not as this one is: a worker may learn late that its
 * ublkd is gone. */
bool foreign_disks_contain(const struct foreign_disks *disks, const struct foreign_disk *disk);
void foreign_disks_clear(struct foreign_disks *disks);
