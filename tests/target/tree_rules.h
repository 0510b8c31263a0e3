/* SPDX-License-Identifier: MIT */
/* What must become of a tree of targets: the rules, written down once more, and not taken from the code. What a leaf can do alone is given
 * to them. */
#pragma once

#include "targets/worker/disk/disk.h"

enum { PLACE_POINTER_SIZE = 64 };
enum {
        WIDTH_MAX = 3,
        LEAVES_MAX = WIDTH_MAX * WIDTH_MAX,
        TREE_MAX = 1 + WIDTH_MAX + LEAVES_MAX,
        QUEUES = 2, /* that are asked for */
        CHUNK = 4096,
        INNER_LENGTH = 32 << 10, /* of a part below another target */
        OUTER_LENGTH = 16 << 10, /* of one that is the outermost */
};

enum kind {
        NULL_LEAF,
        LOOP_LEAF,
        REST_OF, /* linear with an offset */
        PART_OF, /* and a length */
        FAULT_OVER,
        LIST_OF, /* linear with children */
        STRIPE_OF,
        _KIND_MAX,
        FIRST_INNER = REST_OF,
        FIRST_OF_MANY = LIST_OF,
};

/* A tree, or a part of one. */
struct tree {
        enum kind kind;
        unsigned width;
        const struct tree *below[WIDTH_MAX];
};

/* What a leaf alone can do. */
struct leaf {
        struct disk_params params;
        bool in_memory, ends_with_process, end_known;
        char path[256], key[BACKING_KEY_MAX + 1];
        char stable[32]; /* the same store by a name that stays; empty: it has none */
        uint64_t size, inode;
};

/* A target of a tree. They are in the order of the places that ublkd gives: level by level, and on each from the first to the last. */
struct place {
        const struct tree *tree;
        int parent;
        const struct leaf *leaf; /* NULL: it stands on others */
};

struct places {
        struct place all[TREE_MAX];
        unsigned count, loops;
};

/* Why a tree is refused. */
enum refusal {
        REFUSED_SIZE = 1 << 0, /* a list has no place for what follows something without a size */
        REFUSED_BLOCKS =
                1 << 1, /* a part, or a child of a list, begins in the middle of a block of what is below */
};

/* What a disk reaches of a loop. */
struct reach {
        uint64_t start, end; /* in the file; end 0: wherever the file ends */
        bool is_whole;       /* the disk lies in the file as it is */
        bool is_seen;        /* a target between them sees all requests */
};

/* Set the offset of each part, in bytes. */
void tree_set_part(unsigned part);
/* Place the targets of a tree. files: of its loops, in the order of the spec. */
void tree_place(
        const struct tree *tree, const struct leaf *null, const struct leaf *files, struct places *ret);
unsigned tree_faults(const struct tree *tree);

/* Return enum target_flag of the whole. */
unsigned expect_flags(const struct places *places);
/* Return the size of the disk in bytes; 0: as large as asked for. *ret_refused: of enum refusal. */
uint64_t expect_size(const struct places *places, unsigned *ret_refused);
/* Write the pointer of the target at a place: "/target/children/1". */
void expect_pointer(const struct places *places, unsigned number, char ret[static PLACE_POINTER_SIZE]);
/* Return the name that stays of a store of the disk, or NULL. */
const char *expect_stable_path(const struct places *places);
/* Return what the disk reaches of the loop at a place. */
struct reach expect_reach(const struct places *places, unsigned number);
/* Return what the kernel shows of a disk of `size` bytes. */
struct disk_params expect_params(const struct places *places, uint64_t size);
