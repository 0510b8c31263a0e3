/* SPDX-License-Identifier: MIT */
/* PURE: what ublkd does about the file system of a disk, by what its record notes and by what is on the disk.
 *
 * The rule that nothing may break: a file system is made on a blank disk only; or, where ublkd has begun one and a client
 * names its UUID to have it made again, over the part that is there. */
#pragma once

#include "ublkd/filesystems/filesystem_wire.h"

#include <stdbool.h>
#include <sys/types.h>

enum filesystem_verdict {
        FILESYSTEM_IS_MADE,      /* it is there: made now, or earlier */
        FILESYSTEM_IS_MOUNTED,   /* the same */
        FILESYSTEM_IS_UNMOUNTED, /* the same */
        FILESYSTEM_NOT_MADE,     /* ublkd has made none that could be mounted */
        FILESYSTEM_NOT_MOUNTED,  /* error: the kernel refuses the mount */
        FILESYSTEM_NOT_UNMOUNTED, /* error: the kernel refuses its end; -EBUSY: it is in use; -EEXIST: containers have
                                      copies; -ETIMEDOUT: one could not be looked at; -ESTALE: there
                                      is another disk now */
        FILESYSTEM_OTHER_KIND,     /* ublkd has made one of another kind */
        FILESYSTEM_NOT_BLANK,      /* there is something on the disk that ublkd has not made */
        FILESYSTEM_UNFINISHED,     /* it was begun, and is not whole */
        FILESYSTEM_LOST,           /* it was made, and is not there */
        FILESYSTEM_NEWER,          /* the note of another version of ublkd */
        FILESYSTEM_IN_USE,         /* the disk is mounted, or another program has it for itself */
        FILESYSTEM_NO_DISK,        /* there is no disk, or it has become another one */
        FILESYSTEM_NOT_READ,       /* error: opening or reading the disk */
        FILESYSTEM_NOT_STORED,     /* error: writing the note */
        FILESYSTEM_NOT_INSTALLED,  /* the program is missing */
        FILESYSTEM_NOT_CONFINED,   /* error: the program was not started */
        FILESYSTEM_PROGRAM_FAILED, /* the disk is blank, or the note is that of UNFINISHED */
        FILESYSTEM_TOOK_TOO_LONG,
        FILESYSTEM_OPEN_TO_USERS, /* users may write to the disk or its store: it is not mounted */
        FILESYSTEM_NOT_BEGUN,     /* ublkd notes no file system with the UUID that is to be made again */
        _FILESYSTEM_VERDICT_MAX
};

struct filesystem_step {
        enum filesystem_task task;
        enum filesystem_verdict verdict; /* with FILESYSTEM_LEAVES: the answer */
};

/* The users whose requests count together, as one person can be all of them. */
struct filesystem_account {
        bool is_set; /* false: the client is an administrator */
        uid_t first, last;
};

/* What a client wants. */
enum filesystem_aim { FILESYSTEM_AIM_MADE, FILESYSTEM_AIM_MOUNTED, FILESYSTEM_AIM_UNMOUNTED };
struct filesystem_wish {
        enum filesystem_aim aim;
        enum filesystem_kind kind; /* of AIM_MADE, and ... */
        char remake
                [FILESYSTEM_UUID_SIZE]; /* ... the UUID of what is made again, if it is not whole; "": nothing */
        uint32_t flags;                 /* of AIM_MOUNTED and AIM_UNMOUNTED: enum filesystem_flag */
        struct filesystem_account account; /* of the client */
};

/* noted: of the record. wish: of AIM_MADE. sight: with the kind and the UUID of the note. */
struct filesystem_step filesystem_next(
        const struct filesystem *noted, const struct filesystem_wish *wish, enum filesystem_sight sight);
/* The same for a mount. */
struct filesystem_step filesystem_next_mount(const struct filesystem *noted, enum filesystem_sight sight);
