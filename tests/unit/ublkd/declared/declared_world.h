/* SPDX-License-Identifier: MIT */
/* Directories with files of devices, a store, and the module `declared` over them. One at a time. */
#pragma once

#include "ublkd/declared/declared.h"
#include "ublkd/policy/policy.h"

#include <systemd/sd-event.h>

enum { NAMES = 4, DIRS = 2 };

enum file_is { IS_ABSENT, IS_GOOD, IS_OTHER_SPEC, IS_BROKEN, IS_BAD_SPEC, IS_MASK, IS_WRITABLE, _IS_MAX };

struct world {
        char root[48], dirs[DIRS][64];
        const char *paths[DIRS];
        sd_event *event;
        struct device_store *store;
        struct disk_search *search;
        struct declared *declared;
        struct policy policy; /* borrows its pools */
        bool applied;
        struct problem_list problems; /* of the last time */
        bool doubt;                   /* a file is bad, so nothing is removed */
        bool lost;        /* the runtime directory has the record of d3, and the database has not */
        bool early;       /* a disk 0 exists before the first pass */
        bool used[NAMES]; /* the disk of this number */
        enum file_is is[DIRS][NAMES];
        bool away[DIRS];   /* the directory has another name for now */
        bool faulty[DIRS]; /* other users may write to it, so it is not read */
};

extern struct world world; /* disk_search calls a function without context */

/* Create all of it in a temporary directory; the disks are not known yet. */
void world_make(void);
void world_free(void);

/* Name the file of a device. */
void file_path(size_t dir, size_t name, char ret[160]);
/* Write the file of a device, or remove it. */
void file_set(size_t dir, size_t name, enum file_is is);
/* Move a directory away, or back. */
void dir_move(size_t dir);
/* Let other users write to a directory, or not. */
void dir_set_faulty(size_t dir, bool faulty);

/* Make the disk of each device Live, as the reconciler would. */
void show_disks(void);
/* Erase the records whose deletion was requested. */
void erase_withdrawn(void);

/* Apply the files and wait for the end. asked: by the user. */
void apply_as(bool asked);
void apply(void);
