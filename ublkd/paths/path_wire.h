/* SPDX-License-Identifier: MIT */
/* What the supervisor and its path watcher send each other, one message each, over a SOCK_SEQPACKET. Both are
 * the same program, so there are no versions. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What is served, or was found at a path: a regular file by its device and inode, a block device by its own
 * number. */
struct path_store {
        bool is_disk;
        uint64_t device; /* a dev_t: of the file system, or of the disk */
        uint64_t inode;  /* of a file; a disk has 0 */
};

static inline bool path_store_equal(const struct path_store *one, const struct path_store *other)
{
        return one->is_disk == other->is_disk && one->device == other->device && one->inode == other->inode;
}

/* Where a path leads. */
enum path_state {
        PATH_UNKNOWN, /* it could not be looked at */
        PATH_SAME,    /* to what is served */
        PATH_OTHER,   /* to something else */
        PATH_GONE,    /* to nothing */
        _PATH_STATE_MAX
};

/* Whether the file system of a file has room for what the file has not allocated yet (path_room.h). */
struct path_room {
        bool known; /* false: nothing of it, as where the path does not lead to the file */
        bool low;
        uint64_t missing, available; /* bytes, when that was seen; meaningful with `low` */
        uint64_t seen_at; /* CLOCK_REALTIME, microseconds, of the look at these; meaningful with `low` */
};

/* What one look found. */
struct path_view {
        enum path_state state;
        int error;               /* errno: why it is UNKNOWN or GONE; else 0 */
        bool is_store;           /* OTHER: a file or a disk, which `found` describes; else something else */
        struct path_store found; /* meaningful with is_store */
        struct path_room room;   /* SAME, of a file */
};

static inline bool path_room_equal(const struct path_room *one, const struct path_room *other)
{
        return one->known == other->known && one->low == other->low
               && (!one->low || (one->missing == other->missing && one->available == other->available));
}

static inline bool path_view_equal(const struct path_view *one, const struct path_view *other)
{
        return one->state == other->state && one->error == other->error && one->is_store == other->is_store
               && (!one->is_store || path_store_equal(&one->found, &other->found))
               && path_room_equal(&one->room, &other->room);
}

/* Names a path in both directions. A slot is used again, with another serial. */
struct path_id {
        uint32_t slot, serial;
};

enum { PATH_SLOTS_MAX = 1 << 20 };

enum path_order_type { PATH_ORDER_WATCH, PATH_ORDER_DROP, PATH_ORDER_PING };

struct path_order {
        enum path_order_type type;
        struct path_id id;       /* unless PING */
        struct path_store store; /* WATCH: what is served */
        char path[PATH_MAX];     /* WATCH: absolute; the message ends with its NUL */
};

/* Return how many bytes of an order are sent. */
static inline size_t path_order_size(const struct path_order *order)
{
        size_t path = order->type == PATH_ORDER_WATCH ? strlen(order->path) + 1 : 0;

        return offsetof(struct path_order, path) + path;
}

enum path_report_type {
        PATH_REPORT_LOOKING, /* a look at this path begins, which may hang */
        PATH_REPORT_VIEW,    /* it is over */
        PATH_REPORT_PONG,
};

struct path_report {
        enum path_report_type type;
        struct path_id id;
        struct path_view view;
};
