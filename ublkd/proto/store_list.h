/* SPDX-License-Identifier: MIT */
/* The backing stores of a disk that has several, or has one among the children of a target: in CONFIG and in BACKING, in the order of
 * the tree. Of a disk that lies in one store as it is, the messages have no list. */
#pragma once

#include "ublkd/backing/backing.h"

#include <cjson/cJSON.h>
#include <stdint.h>

enum { STORE_LIST_MAX = 16 };

struct listed_store {
        /* In CONFIG what the disk was made on, empty: any store will do. In BACKING what was opened, or was refused; empty: the
         * worker has opened neither. */
        struct backing_identity identity;
        bool has_fd; /* a descriptor of it is beside the message, among those of the others in this order */
        /* In CONFIG. */
        bool in_this_boot; /* the identity was taken in this boot */
        bool was_served;   /* the disk was served from it last */
        bool is_shared;    /* another disk of this ublkd has claimed the block device */
        uint32_t user;     /* whose rights the worker opens it with; 0: its own */
        /* In BACKING: as in struct worker_backing. */
        bool claimed;
        uint32_t major, minor;
        uint64_t inode;
};

struct store_list {
        struct listed_store *items; /* NULL: the message has no list */
        unsigned count;
};

/* Which message a list is in. */
enum store_list_use { STORE_LIST_IN_CONFIG, STORE_LIST_IN_BACKING, _STORE_LIST_USE_MAX };

/* Add a list to the object of a message; nothing for one without items. Return false on ENOMEM. */
bool store_list_write(
        cJSON *object, const char *name, const struct store_list *list, enum store_list_use use);
/* Read a list from its JSON value, of any type. The caller clears *ret, also on failure. Return 0; -EBADMSG, also for a list without
 * items; -ENOMEM. */
int store_list_read(const cJSON *array, enum store_list_use use, struct store_list *ret);
/* Return how many of the stores have a descriptor. */
unsigned store_list_fds(const struct store_list *list);
void store_list_clear(struct store_list *list);
