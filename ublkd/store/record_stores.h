/* SPDX-License-Identifier: MIT */
/* Which backing stores a disk with a list of them (target_tree_has_list()) was created on. Each is known by its place in the tree, as
 * long as the spec has its path there: what becomes of one, a change of its path or a consent to another store, leaves the others as
 * they are. Pure. */
#pragma once

#include "ublkd/backing/backing.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/model/device_spec_store.h"

enum { RECORD_BOOT_SIZE = 37 }; /* bytes of a boot id, with the NUL */

struct record_store {
        unsigned number;                  /* of the place, in the order of the tree */
        char *path;                       /* in the spec */
        struct backing_identity identity; /* not empty */
        char boot
                [RECORD_BOOT_SIZE]; /* id of the boot in which ublkd read the identity, or a client accepted it */
};

/* Constant once it is made. In each function NULL is one without stores. */
struct record_stores {
        char *unreadable; /* what the database has, if this ublkd cannot read it: it is stored as it is; NULL */
        unsigned count;
        struct record_store items[];
};

/* Free the stores. Return NULL. */
struct record_stores *record_stores_free(struct record_stores *stores);
DEFINE_CLEANUP(struct record_stores, record_stores_free);
#define _cleanup_record_stores_ _cleanup_(record_stores_free_pointer)

/* Return the store of that place; NULL: nothing is known of it, or it was known with another path. */
const struct record_store *record_stores_at(
        const struct record_stores *stores, unsigned number, const char *path);
/* Return the first store with that path; NULL: nothing is known of it. */
const struct record_store *record_stores_find(const struct record_stores *stores, const char *path);
/* Return the store of another place than `number`, and at another path than `path`, that has this identity; NULL: none. Two
 * places with one path lie on one store. */
const struct record_store *record_stores_elsewhere(const struct record_stores *stores, unsigned number,
        const char *path, const struct backing_identity *identity);
/* Return whether the database has what this ublkd cannot read: of such a device nothing may be changed. */
bool record_stores_are_unreadable(const struct record_stores *stores);
bool record_stores_equal(const struct record_stores *one, const struct record_stores *other);

/* Make a copy. Return 0 or -ENOMEM. */
int record_stores_copy(const struct record_stores *stores, struct record_stores **ret);
/* Make what is known of the stores of `spec`, which follows `before` (NULL: unknown). A place keeps its store with its path, and also
 * if it gets a path that another place had: then the bytes of a disk would move, or the paths have been exchanged outside. A place
 * without a known store gets the one of its path, if no place keeps that. Of a new path nothing is known. *ret: NULL if there is none.
 * Return 0 or -ENOMEM. */
int record_stores_carry(const struct record_stores *stores, const struct device_spec *before,
        const struct device_spec *spec, struct record_stores **ret);
/* Make a copy with another identity for the store of that place. Return 0 or -ENOMEM. */
int record_stores_with(const struct record_stores *stores, unsigned number, const char *path,
        const struct backing_identity *identity, const char *boot, struct record_stores **ret);

/* Write them as a JSON array, "" if there are none. Return 0 and a text that the caller frees, or -ENOMEM. */
int record_stores_print(const struct record_stores *stores, char **ret);
/* Read such a text. What cannot be read is kept: record_stores_are_unreadable(). Return 0 or -ENOMEM. */
int record_stores_parse(const char *text, struct record_stores **ret);
