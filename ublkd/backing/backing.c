/* SPDX-License-Identifier: MIT */
/* Which backing store a disk was made on: comparing two identities. */
#include "ublkd/backing/backing.h"

#include <assert.h>
#include <string.h>

bool backing_identity_is_empty(const struct backing_identity *identity)
{
        return !*identity->boot && !*identity->lasting;
}

bool backing_identity_equal(const struct backing_identity *one, const struct backing_identity *other)
{
        return one->basis == other->basis && one->is_disk == other->is_disk
               && strcmp(one->boot, other->boot) == 0 && strcmp(one->lasting, other->lasting) == 0;
}

const char *backing_identity_text(const struct backing_identity *identity)
{
        return *identity->lasting ? identity->lasting : identity->boot;
}

static enum backing_match match(const char *expected, const char *found)
{
        return strcmp(expected, found) == 0 ? BACKING_SAME : BACKING_OTHER;
}

enum backing_match backing_compare(
        const struct backing_identity *expected, const struct backing_identity *found, bool same_boot)
{
        if (backing_identity_is_empty(expected))
                return BACKING_UNKNOWN;
        if (expected->is_disk != found->is_disk)
                return BACKING_OTHER;
        if (same_boot && *expected->boot && strcmp(expected->boot, found->boot) == 0)
                return BACKING_SAME;
        if (*expected->lasting) /* a drive that was plugged in again has another number and the same serial */
                return match(expected->lasting, found->lasting);
        if (same_boot && *expected->boot)
                return match(expected->boot, found->boot);
        return BACKING_UNKNOWN;
}

const char *backing_basis_to_string(enum backing_basis basis)
{
        static const char *const names[] = {
                [BACKING_NONE] = "none",
                [BACKING_FILE_HANDLE] = "file-handle",
                [BACKING_FILE_INODE] = "inode",
                [BACKING_DISK_SEQUENCE] = "diskseq",
                [BACKING_DISK_WWID] = "wwid",
                [BACKING_DISK_SERIAL] = "serial",
                [BACKING_DM_UUID] = "dm-uuid",
                [BACKING_MD_UUID] = "md-uuid",
                [BACKING_PARTITION_UUID] = "partition-uuid",
                [BACKING_LOOP_FILE] = "loop-file",
        };
        static_assert(sizeof(names) / sizeof(names[0]) == _BACKING_BASIS_MAX, "every basis has a name");

        return (unsigned)basis < _BACKING_BASIS_MAX ? names[basis] : "none";
}
