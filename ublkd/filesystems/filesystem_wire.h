/* SPDX-License-Identifier: MIT */
/* The messages between the supervisor and the process that makes a file system: an order; what the process has seen on
 * the disk; a task, which the supervisor sends after it has stored what it is about to do; a report. */
#pragma once

#include "ublkd/model/filesystem.h"

#include <limits.h>
#include <stdint.h>

#define FILESYSTEM_PROCESS_NAME "filesystem"
#define FILESYSTEM_PROCESS_OPTION "--" FILESYSTEM_PROCESS_NAME

enum {
        FILESYSTEM_LINK_FD = 3,     /* a socket that keeps messages apart */
        FILESYSTEM_PATH_SIZE = 150, /* with the name of a device's directory, less than MOUNT_PATH_SIZE */
        FILESYSTEM_TEXT_SIZE = 512,
};

struct filesystem_order {
        char device[FILESYSTEM_UUID_SIZE]; /* its uid */
        char path
                [FILESYSTEM_PATH_SIZE]; /* of the disk; "": it is not asked for anything, for an unmount; and ... */
        char hold
                [FILESYSTEM_PATH_SIZE]; /* ... its path is here, for one: it is kept open, if it can be; and ... */
        char number
                [FILESYSTEM_PATH_SIZE]; /* ... of the file with its device number; "": a test's disk is a file */
        uint32_t kind;                  /* enum filesystem_kind, and ... */
        char uuid[FILESYSTEM_UUID_SIZE]; /* ... what to look for; "": nothing */
};

enum filesystem_sight {
        FILESYSTEM_SEES_BLANK, /* all bytes that were read are zero */
        FILESYSTEM_SEES_IT,    /* the file system of the order: its kind and its UUID */
        FILESYSTEM_SEES_OTHER, /* anything else */
        FILESYSTEM_SEES_USE,   /* the disk is mounted, or another program has it for itself */
        FILESYSTEM_SEES_ERROR, /* `error`: opening or reading the disk */
        _FILESYSTEM_SIGHT_MAX
};

struct filesystem_look {
        uint32_t sight; /* enum filesystem_sight */
        int32_t error;  /* -errno; 0: none */
};

enum filesystem_task {
        FILESYSTEM_LEAVES, /* there is nothing to do, and no report */
        FILESYSTEM_MAKES,
        FILESYSTEM_CHECKS,  /* reads only */
        FILESYSTEM_REMAKES, /* checks what is there; if that is not whole, makes it over whatever is there */
        FILESYSTEM_MOUNTS,
        FILESYSTEM_UNMOUNTS,
        _FILESYSTEM_TASK_MAX
};

/* What a mount is like (set-user-id bits and device nodes never count), and what an unmount ends. */
enum filesystem_flag {
        FILESYSTEM_NO_EXEC = 1 << 0,
        FILESYSTEM_COPIES_TOO = 1 << 1, /* those in containers, if no process uses them */
};

struct filesystem_go {
        uint32_t task;                    /* enum filesystem_task */
        uint32_t kind;                    /* enum filesystem_kind, and ... */
        char uuid[FILESYSTEM_UUID_SIZE];  /* ... the UUID of what is made or checked */
        uint32_t flags;                   /* of a mount or its end: enum filesystem_flag */
        char top[FILESYSTEM_PATH_SIZE];   /* of a mount: the directory of all mounts, and ... */
        char point[FILESYSTEM_UUID_SIZE]; /* ... the name of its directory in there */
        char store[PATH_MAX];             /* of a mount: the file that the disk stands on; "": none */
        char number
                [FILESYSTEM_PATH_SIZE]; /* of an unmount: of the file with the device number of the disk; "": it is not
                                           the disk of the order any more, and has no copies; and ... */
        char node[FILESYSTEM_PATH_SIZE]; /* ... of the disk; "": none */
};

enum filesystem_outcome {
        FILESYSTEM_DONE, /* made, and on stable storage; checked, and whole; mounted; not mounted any more */
        FILESYSTEM_NO_PROGRAM, /* the program is not installed */
        FILESYSTEM_NO_WALLS,   /* error: confining the program; it was not started */
        FILESYSTEM_KEPT, /* the disk was not blank any more, or in use: nothing was started; error, sight; or, of
                            * a mount: users may write to its store */
        FILESYSTEM_LEFT,   /* error: the mount of the host has ended, and a copy of it may be left */
        FILESYSTEM_FAILED, /* error: running the program; or `status` and `text` show what it was */
        FILESYSTEM_LATE,   /* it took too long, or the process was killed */
        _FILESYSTEM_OUTCOME_MAX
};

struct filesystem_report {
        uint32_t outcome; /* enum filesystem_outcome */
        int32_t error;    /* -errno; 0: none */
        int32_t status;   /* of the program, as wait() gives it; 0 if it did not run */
        uint32_t sight;   /* enum filesystem_sight, of the disk after it */
        uint32_t lingers; /* not 0: an open hangs in the kernel, and the process ends after it */
        char text[FILESYSTEM_TEXT_SIZE]; /* what the program has printed first, cut off */
};
