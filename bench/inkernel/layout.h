/* SPDX-License-Identifier: MIT */
/* What the loop of a queue knows, in user space and in BPF: constants, what lasts from round to round, and the memory
 * that both share with the driver. */
#pragma once

#include <linux/errno.h>
#include <linux/io_uring.h>
#include <linux/types.h>
#include <linux/ublk_cmd.h>

enum {
        DEPTH_MAX = 128,
        ROUND_MAX = 128, /* completions, or tags of a list, in one round */
        ENTRIES =
                256, /* of the submission queue: each turn of a round prepares at most one, and two send the rest */
        BUFFERS = 64, /* lists of arrivals, and the length of each */
        LIST_LENGTH = 64,
        ELEMENTS = 2 * DEPTH_MAX,

        /* Of the memory that this program, the driver and BPF share. */
        SHARED_ELEMENTS = BUFFERS * 16, /* before it: the ring of buffers */
        SHARED_LISTS = SHARED_ELEMENTS + ELEMENTS * 8,
        SHARED_SIZE = 3 * 4096,

        RING_FD =
                100, /* the ring's descriptor: libbpf 1.1 changes no number of a struct_ops after the compiler */
        COMMAND_FILE = 0, /* places in the ring's table of files */
        BACKING_FILE = 1,
};
_Static_assert(SHARED_LISTS + BUFFERS * LIST_LENGTH * 2 <= SHARED_SIZE, "the lists fit");

enum kind { KIND_ARRIVAL, KIND_OPERATION, KIND_COMMIT, KIND_FETCH }; /* in user_data above the tag */

/* Known before the loop is loaded, and constant from then on. */
struct settings {
        __u32 cq_head, cq_tail, cqes, cq_mask, sq_tail; /* offsets in the memory of the rings */
        __u32 rings_size;
        __u32 null;  /* there is no backing file */
        __u32 batch; /* BATCH_IO */
        __u32 depth;
        __u32 commit, commit_batch, fetch_batch; /* operations of the driver */
        __u32 batch_flags;
        __u32 list_bytes;          /* of each list: no more than all tags are */
        __u64 descriptors, shared; /* addresses in user space */
        __u64 start;               /* of the disk in the backing file, in bytes */
};

/* What lasts from round to round. */
struct state {
        __u32 prepared; /* entries of this round */
        __u32 sq_tail;
        __u32 silent; /* completions of this round that no wait is for */
        __u32 aborted;
        __s32 failure;
        __u32 list_at, list_left, list_id; /* tags that have arrived */
        __u32 element_end, element_sent;
        __u32 buffers_tail;
        __u32 head; /* of the completions, in this round */
        __u64 rounds, requests;
};

/* One element of a batch; struct ublk_elem_header of newer headers. */
struct element {
        __u16 tag, buffer;
        __s32 result;
};

/* struct ublk_batch_io of newer headers. */
struct batch_command {
        __u16 queue, flags, elements;
        __u8 element_size, reserved;
        __u64 reserved2;
};

struct memory {
        struct io_uring_sqe *sqes;
        char *rings;
        char *shared; /* null without batches */
};
