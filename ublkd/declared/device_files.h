/* SPDX-License-Identifier: MIT */
/* The files NAME.json that describe devices, in several directories, the most important first.
 *
 * A file replaces one of the same name in a later directory. A link to /dev/null masks it; an empty file
 * is a fault. A file is taken only if root or the user of ublkd owns it and no other user may write to it: who writes a
 * spec reads and writes what the spec names. What cannot be read is unknown, which is not the same as gone. */
#pragma once

#include "ublkd/base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
        DEVICE_DIRS_MAX = 16,
        DEVICE_FILES_MAX = 4096,                  /* in a directory */
        DEVICE_FILE_SIZE_MAX = 1024 * 1024,       /* as the body of a request */
        DEVICE_FILES_SIZE_MAX = 12 * 1024 * 1024, /* of all together */
        DEVICE_FILE_PATH_MAX = 1024,
};

enum dir_state {
        DIR_READ,    /* all that is in it is known */
        DIR_MISSING, /* a mount may be missing, so its files are unknown */
        DIR_FAULTY,  /* it cannot be read, or not be trusted */
};

struct device_dir {
        char *path;
        enum dir_state state;
        char *fault;     /* of DIR_FAULTY: one sentence; else NULL */
        uint64_t device; /* of its file system; 0: unknown */
};

enum file_state {
        FILE_READ,
        FILE_MASKED, /* it stands for no device */
        FILE_FAULTY, /* it cannot be read or is not taken */
        FILE_UNSURE, /* a more important directory is DIR_FAULTY, which may have a file of that name */
};

struct device_file {
        char *path;
        enum file_state state;
        char *text;  /* of FILE_READ, ends with a NUL; else NULL */
        size_t size; /* of the text */
        char *fault; /* of FILE_FAULTY: one sentence; else NULL */
};

/* Zero-initialise. The files are in the order of their names, each name once. */
struct device_files {
        struct device_dir *dirs;
        size_t dir_count;
        struct device_file *items;
        size_t count;
};

/* Read the files in `dirs`. It may block for ever, so call it in a process apart. Return 0 or -ENOMEM; all other faults
 * are in `ret`. */
int device_files_read(const char *const *dirs, size_t count, struct device_files *ret);
void device_files_clear(struct device_files *files);
#define _cleanup_device_files_ _cleanup_(device_files_clear)

/* Take a directory that was read for one that cannot be read, with its files, and those of less important directories.
 * Return 0 or -ENOMEM. */
int device_files_doubt(struct device_files *files, size_t dir, const char *cause);

/* Return the name of the file: the last part of its path. */
const char *device_file_name(const char *path);

/* Write `files` for device_files_parse(). On failure the stream has an error. */
void device_files_write(const struct device_files *files, FILE *stream);
/* Read what device_files_write() has written. Return 0; -EBADMSG: something is missing; -ENOMEM. */
int device_files_parse(const void *data, size_t size, struct device_files *ret);
