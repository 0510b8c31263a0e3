/* SPDX-License-Identifier: MIT */
/* What a queue consists of, and its requests from arrival to answer. Private to the queue (ublk_queue.h). On
 * the queue's thread. */
#pragma once

#include "targets/worker/queue/queue_action.h"
#include "targets/worker/queue/durability.h"
#include "targets/worker/io/io_data.h"
#include "targets/worker/io/io_loop.h"
#include "targets/worker/queue/late.h"
#include "targets/worker/queue/plain.h"
#include "targets/worker/queue/queue_control.h"
#include "targets/worker/queue/queue_leave.h"
#include "targets/worker/queue/queue_meter.h"
#include "targets/worker/queue/room.h"
#include "targets/worker/queue/store_end.h"
#include "targets/worker/queue/throttle.h"
#include "targets/worker/queue/ublk_port.h"
#include "targets/worker/queue/ublk_queue.h"

/* One per tag. */
struct request {
        struct target_io io;
        struct request_meter meter;
        struct throttled throttled;
        const struct ublksrv_io_desc *descriptor; /* written by the driver; stays until the answer */
        struct plain_data data;                   /* of reads and writes */
        struct ublk_batch_element success;        /* the answer to a plain one, if all its bytes are moved */
        bool registered;                          /* zero copy: the driver has registered its pages */
} __attribute__((aligned(64))); /* cache lines, and a size that leads from tag to request with a shift */
_Static_assert((sizeof(struct request) & (sizeof(struct request) - 1)) == 0, "the size is a power of two");

/* What all requests of a queue have in common, and the way of plain ones depends on. */
struct queue_profile {
        bool linear;          /* the core itself moves them, see struct target_device */
        bool inline_transfer; /* with system calls, if they are short */
        bool direct;          /* requests are performed without a coroutine: nothing of them waits */
        bool copies;          /* they have memory of this process */
        bool batched;         /* answers go in batches */
        bool mapped;          /* the core itself moves those whose bytes lie in one file */
};

/* A request that a system call has moved, or has failed to move. */
struct moved_inline {
        uint16_t tag;
        int result; /* bytes, or -errno */
};

struct ublk_queue {
        struct io_loop loop;
        struct io_data data;
        struct queue_meter meter;
        struct queue_control control;
        struct throttle throttle;
        struct durability durability;
        struct room room;
        struct store_end store_end;
        struct late late;
        struct moved_inline *moved; /* in this round, and not answered yet; one place for each tag */
        unsigned moved_count;
        uint64_t busy_poll;                        /* nanoseconds */
        uint32_t max_io_size;                      /* bytes */
        const struct ublksrv_io_desc *descriptors; /* written by the driver, one per tag */
        size_t descriptors_size;
        struct request *requests;
        struct ublk_port port;
        struct tag_queue waiting; /* arrived, but there was no stack to run them on */
        unsigned depth;
        struct plain_rules plain;
        unsigned plain_operations; /* as long as nothing limits them */
        struct queue_profile profile;
        void (*take_completions)(struct ublk_queue *queue); /* all that are there; for that profile */
        bool ticking;                                       /* a tick is under way */
        bool ticked;                                        /* and has come */
        bool look_due;                                      /* the same, to look for requests that are late */
        bool watched; /* such a tick is under way, or no request can be late: nothing of them waits */
        bool target_started;
        bool begun; /* the first requests have arrived */
        atomic_bool *served;
        /* last: requests do not need them */
        struct queue_action action;
        struct queue_leave leave;
};

/* Choose queue->take_completions. Call once plain rules, data and port are there, and profile.direct. */
void queue_requests_choose_profile(struct ublk_queue *queue);

/* Begin a request that has been described, and that nothing holds back (any more). */
void queue_requests_begin(struct ublk_queue *queue, struct request *request);

/* Begin no request that arrives from now on, or that is held back. */
void queue_requests_leave(struct ublk_queue *queue);
/* Return how many requests have begun and are not answered, without those that the next worker begins again. */
uint64_t queue_requests_in_hand(const struct ublk_queue *queue);

/* Begin the requests that wait for a stack, as far as there is one. */
void queue_requests_begin_waiting(struct ublk_queue *queue);
