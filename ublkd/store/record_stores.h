/* SPDX-License-Identifier: MIT */
/* Which backing stores a disk with a list of them (target_tree_has_list()) was created on. Each is known by its path in the spec: what
 * becomes of one, a change of its path or a consent to another store, leaves the others as they are. Two targets with one path lie on
 * one store. Pure. */
#pragma once

#include "ublkd/backing/backing.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/model/device_spec_store.h"

enum { RECORD_BOOT_SIZE = 37 }; /* bytes of a boot id, with the NUL */

struct record_store {
        char *path;
        struct backing_identity identity; /* not empty */
        char boot
                [RECORD_BOOT_SIZE]; /* id of the boot in which ublkd read the identity, or a client accepted it */
};

/* Constant once it is made. In each function NULL is one without stores. */
struct record_stores {
        unsigned count;
        struct record_store items[];
};

/* Free the stores. Return NULL. */
struct record_stores *record_stores_free(struct record_stores *stores);
DEFINE_CLEANUP(struct record_stores, record_stores_free);
#define _cleanup_record_stores_ _cleanup_(record_stores_free_pointer)

/* Return the store with that path; NULL: nothing is known of it. */
const struct record_store *record_stores_find(const struct record_stores *stores, const char *path);
bool record_stores_equal(const struct record_stores *one, const struct record_stores *other);

/* Make a copy. Return 0 or -ENOMEM. */
int record_stores_copy(const struct record_stores *stores, struct record_stores **ret);
/* Make a copy of those whose path the spec has. *ret: NULL if there is none. Return 0 or -ENOMEM. */
int record_stores_of_spec(
        const struct record_stores *stores, const struct device_spec *spec, struct record_stores **ret);
/* Make a copy with another identity for the store with that path. Return 0 or -ENOMEM. */
int record_stores_with(const struct record_stores *stores, const char *path,
        const struct backing_identity *identity, const char *boot, struct record_stores **ret);

/* Write them as a JSON array, "" if there are none. Return 0 and a text that the caller frees, or -ENOMEM. */
int record_stores_print(const struct record_stores *stores, char **ret);
/* Read such a text. Return 0; -EBADMSG; -ENOMEM. */
int record_stores_parse(const char *text, struct record_stores **ret);
