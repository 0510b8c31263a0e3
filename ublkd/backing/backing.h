/* SPDX-License-Identifier: MIT */
/* Which backing store a disk was made on, distinct from every other store.
 *
 * A path is only a name, and a name can lead elsewhere tomorrow. An identity is a token that the kernel or
 * the hardware gives out once: see targets/loop/store_identity.h and file_identity.h for where each token comes from. Tokens are
 * opaque: they are compared byte by byte, and shown to the administrator. */
#pragma once

#include <stdbool.h>

enum { BACKING_TOKEN_SIZE = 256 }; /* bytes, with the NUL */

/* What identifies a store. The order is part of the database: add at the end. */
enum backing_basis {
        BACKING_NONE,           /* nothing distinguishes it from another */
        BACKING_FILE_HANDLE,    /* the file system's handle, which has the inode's generation */
        BACKING_FILE_INODE,     /* inode number and time of birth */
        BACKING_DISK_SEQUENCE,  /* the kernel's number of this attachment of a disk (diskseq) */
        BACKING_DISK_WWID,      /* world-wide identifier of the drive */
        BACKING_DISK_SERIAL,    /* serial number of the drive */
        BACKING_DM_UUID,        /* of a device-mapper device, such as a logical volume */
        BACKING_MD_UUID,        /* of an array */
        BACKING_PARTITION_UUID, /* of an entry of the partition table */
        BACKING_LOOP_FILE,      /* the identity of the file below a loop device */
        _BACKING_BASIS_MAX
};

struct backing_identity {
        enum backing_basis basis;         /* of `lasting`, or of `boot` where there is no lasting one */
        bool is_disk;                     /* a block device, else a file */
        char boot[BACKING_TOKEN_SIZE];    /* valid within one boot; "": none */
        char lasting[BACKING_TOKEN_SIZE]; /* valid over boots; "": none */
};

enum backing_match {
        BACKING_UNKNOWN, /* nothing that could be compared is there */
        BACKING_SAME,
        BACKING_OTHER,
        _BACKING_MATCH_MAX
};

/* Return whether `found` is the store that `expected` was. Pure. same_boot: `expected` was taken in this
 * boot. */
enum backing_match backing_compare(
        const struct backing_identity *expected, const struct backing_identity *found, bool same_boot);
/* Return whether there is no token. */
bool backing_identity_is_empty(const struct backing_identity *identity);
bool backing_identity_equal(const struct backing_identity *one, const struct backing_identity *other);
/* Return the token that is shown to people: the lasting one, else that of this boot, else "". */
const char *backing_identity_text(const struct backing_identity *identity);
/* Return the name of a basis: "file-handle"; "none". */
const char *backing_basis_to_string(enum backing_basis basis);
