/* SPDX-License-Identifier: MIT */
/* The file system that ublkd makes on a disk, as the record of the device notes it. Plain data.
 *
 * The note is written before the first byte of the file system, and again after the last one. So a note with
 * FILESYSTEM_BEGUN is one of a file system whose making may have been cut off anywhere. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum filesystem_kind { FILESYSTEM_EXT4, FILESYSTEM_XFS, _FILESYSTEM_KIND_MAX };

enum filesystem_stage {
        FILESYSTEM_NONE,    /* ublkd has made none */
        FILESYSTEM_BEGUN,   /* a program has begun to make it, and is not known to have ended well */
        FILESYSTEM_MADE,    /* it is on stable storage */
        FILESYSTEM_UNKNOWN, /* another version of ublkd wrote the note */
        _FILESYSTEM_STAGE_MAX
};

enum { FILESYSTEM_UUID_SIZE = 37, FILESYSTEM_NOTE_SIZE = 64 };

struct filesystem {
        enum filesystem_stage stage;
        enum filesystem_kind kind;       /* of BEGUN and MADE */
        char uuid[FILESYSTEM_UUID_SIZE]; /* the same; chosen before it is made */
};

static inline const char *filesystem_kind_name(enum filesystem_kind kind)
{
        static const char *const names[_FILESYSTEM_KIND_MAX] = {
                [FILESYSTEM_EXT4] = "ext4", [FILESYSTEM_XFS] = "xfs"};

        return names[kind];
}

/* Find the kind with this name. Return false if there is none. */
static inline bool filesystem_kind_find(const char *name, enum filesystem_kind *ret)
{
        for (int kind = 0; kind < _FILESYSTEM_KIND_MAX; kind++)
                if (strcmp(filesystem_kind_name((enum filesystem_kind)kind), name) == 0) {
                        *ret = (enum filesystem_kind)kind;
                        return true;
                }
        return false;
}

static inline const char *filesystem_stage_name(enum filesystem_stage stage)
{
        static const char *const names[_FILESYSTEM_STAGE_MAX] = {
                [FILESYSTEM_NONE] = "none",
                [FILESYSTEM_BEGUN] = "begun",
                [FILESYSTEM_MADE] = "made",
                [FILESYSTEM_UNKNOWN] = "unknown",
        };

        return names[stage];
}

/* Write the note, as "ext4 begun UUID"; "": there is none. */
static inline void filesystem_to_note(
        const struct filesystem *filesystem, char ret[static FILESYSTEM_NOTE_SIZE])
{
        if (filesystem->stage == FILESYSTEM_BEGUN || filesystem->stage == FILESYSTEM_MADE)
                snprintf(ret, FILESYSTEM_NOTE_SIZE, "%s %s %s", filesystem_kind_name(filesystem->kind),
                        filesystem_stage_name(filesystem->stage), filesystem->uuid);
        else
                *ret = '\0';
}

/* Read a note. What is not a note is FILESYSTEM_UNKNOWN. */
static inline struct filesystem filesystem_of_note(const char *note)
{
        struct filesystem result = {.stage = FILESYSTEM_UNKNOWN};
        char kind[8], stage[8];
        int length = 0;

        if (*note == '\0')
                return (struct filesystem){.stage = FILESYSTEM_NONE};
        if (sscanf(note, "%7s %7s %36s%n", kind, stage, result.uuid, &length) != 3 || note[length] != '\0'
                || strlen(result.uuid) != FILESYSTEM_UUID_SIZE - 1
                || !filesystem_kind_find(kind, &result.kind))
                return (struct filesystem){.stage = FILESYSTEM_UNKNOWN};
        if (strcmp(stage, filesystem_stage_name(FILESYSTEM_BEGUN)) == 0)
                result.stage = FILESYSTEM_BEGUN;
        else if (strcmp(stage, filesystem_stage_name(FILESYSTEM_MADE)) == 0)
                result.stage = FILESYSTEM_MADE;
        return result;
}
