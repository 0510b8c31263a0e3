/* SPDX-License-Identifier: MIT */
/* PURE: what all files together say: which device is described by which file, and what is wrong with the files.
 *
 * A file has a spec, or an array of specs, as 'ublkctl apply' takes them (a list in "items" and a device as the API
 * shows it are fine as well). Of two specs with one name the first counts, in the order of the names of their files,
 * even if it is invalid. */
#pragma once

#include "ublkd/declared/device_files.h"
#include "ublkd/model/device_spec.h"

enum { DECLARATIONS_MAX = 1024 /* in a file */ };

struct declaration {
        char *name;
        struct device_spec *spec; /* NULL: it is invalid */
        const struct device_file *file;
        char *fault; /* why it is invalid, or why another file counts: one sentence; else NULL */
        const char
                *no_image; /* in a turn: why its pool gives it no image, one sentence; else NULL. Borrowed */
        size_t line;       /* of its beginning */
        size_t order;      /* of the specs of all files, from 1 on; 0: the device is from this file */
};

/* Borrows its files. Zero-initialise. */
struct declared_set {
        const struct device_files *files;
        struct declaration *items; /* in the order of their names, each name once */
        size_t count;
        char **unknown; /* for each file: why not all devices of it are known, one sentence; or NULL */
        struct problem_list problems; /* of all files and directories; "FILE:LINE: POINTER: sentence" */
};

/* Make the set of `files`, which outlive it. is_owner: whether the device of this name is from that file, which then
 * counts before all others; NULL: no device is from a file. Return 0 or -ENOMEM. */
int declared_set_make(const struct device_files *files,
        bool (*is_owner)(const void *userdata, const char *name, const char *path), const void *userdata,
        struct declared_set *ret);
void declared_set_clear(struct declared_set *set);
#define _cleanup_declared_set_ _cleanup_(declared_set_clear)

/* Return what the files say of the device `name`, or NULL: nothing. */
const struct declaration *declared_set_find(const struct declared_set *set, const char *name);

/* Return why it is unknown whether the file `path` still describes the device that it described before, one sentence;
 * NULL: it is known that it does not. Only for a device that declared_set_find() does not find in this file. */
const char *declared_set_unknown(const struct declared_set *set, const char *path);

/* Return whether a directory has a file of that name, good or bad. */
bool declared_set_has_file(const struct declared_set *set, const char *path);
