/* SPDX-License-Identifier: MIT */
/* How a queue talks to the driver: its tags are offered, requests arrive, answers are committed. One command
 * for each tag, or (BATCH_IO) one for many. Everything here runs on the queue's thread. */
#pragma once

#include "targets/worker/io/io_data.h"
#include "ublkd/kernel/ublk_uapi.h"

/* Tags in the order of arrival; never more than there are. */
struct tag_queue {
        uint16_t *tags;
        unsigned size, first, count;
};

/* What comes after an element where the driver copies. */
struct ublk_batch_element_with_address {
        struct ublk_batch_element element;
        uint64_t address;
};

/* Of a port with batches; see ublk_port_batch.c. */
struct ublk_batch {
        char *elements;              /* a circle: what is being committed, then what is to be */
        unsigned element_size, mask; /* bytes; places, a power of two, less one */
        /* Counted on and on: sent ones begin, unsent ones begin, free ones begin, and where those end. */
        unsigned first, sent, end, full;
        unsigned due;                      /* as `end`, once all that has arrived is answered */
        struct io_uring_buf_ring *buffers; /* for lists of tags that have arrived */
        uint16_t *lists;
        unsigned buffer_count, list_length;
        int lent;     /* the buffer whose list is being read, or -1 */
        bool refetch; /* the driver has no command to report arrivals with, and needs one */
};

struct ublk_port {
        struct io_loop *loop;
        struct io_data *data;
        const struct ublk_port_class *class;
        unsigned depth;
        unsigned aborted;        /* tags that the driver has aborted; batches: all or none */
        bool batched;            /* which class it is */
        bool copies;             /* each answer passes the tag's memory to the driver */
        uint16_t arrived;        /* single: what `completed` returns */
        int failure;             /* -errno of a command that the driver did not take, or 0 */
        int *results;            /* per tag, while the answer waits for room */
        struct tag_queue unsent; /* answered, but there was no room for the commit */
        struct ublk_batch batch;
};

enum { UBLK_PORT_LIST_MAX = 128 }; /* tags that arrive at a time; the driver reports no more (MAX_NR_TAG) */

/* The two ways. */
struct ublk_port_class {
        int (*init)(struct ublk_port *port);     /* may be NULL; 0 or -errno */
        void (*destroy)(struct ublk_port *port); /* may be NULL; also after a failure of init */
        int (*fetch)(struct ublk_port *port);
        bool (*commit)(struct ublk_port *port, uint16_t tag, int result); /* false: no room in this round */
        /* Return how many tags have arrived; they are in *ret_tags until the next call. */
        unsigned (*completed)(
                struct ublk_port *port, const struct io_uring_cqe *cqe, const uint16_t **ret_tags);
        void (*send)(struct ublk_port *port);                   /* before a submission; may be NULL */
        void (*keep_uncommitted)(const struct ublk_port *port); /* as ublk_port_keep_uncommitted() */
        bool (*settled)(const struct ublk_port *port);          /* the driver has taken every answer so far */
        bool (*finished)(const struct ublk_port *port);
};
extern const struct ublk_port_class ublk_port_single, ublk_port_batch;

/* Initialise an empty queue for `size` tags; the owner calls free() for `tags`. Return 0 or -ENOMEM. */
int tag_queue_init(struct tag_queue *queue, unsigned size);

static inline void tag_queue_put(struct tag_queue *queue, uint16_t tag)
{
        assert(queue->count < queue->size);
        queue->tags[(queue->first + queue->count++) % queue->size] = tag;
}

static inline uint16_t tag_queue_first(const struct tag_queue *queue)
{
        assert(queue->count > 0);
        return queue->tags[queue->first];
}

static inline void tag_queue_drop_first(struct tag_queue *queue)
{
        queue->first = (queue->first + 1) % queue->size;
        queue->count--;
}

/* Initialise a port. `loop` and `data` must outlive it. Return 0 or -errno. */
int ublk_port_init(struct ublk_port *port, struct io_loop *loop, struct io_data *data, unsigned depth);
/* Free the port, before the loop is destroyed. A zero-initialised port is fine. */
void ublk_port_destroy(struct ublk_port *port);

/* Offer every tag to the driver. Return 0; -errno: the driver refused. */
int ublk_port_fetch(struct ublk_port *port);
/* Return, for the classes, the index at which the driver is to register a tag's next pages (AUTO_BUF_REG). */
static inline uint16_t ublk_port_buffer_index(const struct ublk_port *port, uint16_t tag)
{
#ifdef UBLKD_TEST_WITHOUT_REGISTRATION
        /* Beyond the ring's table: the driver cannot register there. */
        return (uint16_t)(tag % 2 == 0 ? port->depth + tag : tag);
#else
        (void)port;
        return tag;
#endif
}

static inline char *ublk_batch_place(const struct ublk_batch *batch, unsigned index)
{
        return batch->elements + (size_t)(index & batch->mask) * batch->element_size;
}

static inline struct ublk_batch_element ublk_batch_element(
        const struct ublk_port *port, uint16_t tag, int result)
{
        return (struct ublk_batch_element){
                .tag = tag, .buffer = ublk_port_buffer_index(port, tag), .result = result};
}

/* Add the answer to the others that go with the next submission; for a port with batches. copies, address:
 * port->copies, and the tag's memory then. Return false if there is no room. */
static inline bool ublk_batch_commit(
        struct ublk_batch *batch, const struct ublk_batch_element *answer, bool copies, const void *address)
{
        size_t size = copies ? sizeof(struct ublk_batch_element_with_address) : sizeof(*answer);
        struct ublk_batch_element_with_address *place;

        if (__builtin_expect(batch->end == batch->full, 0))
                return false;
        place = (void *)(batch->elements + (batch->end & batch->mask) * size);
        place->element = *answer;
        if (copies)
                place->address = (uintptr_t)address;
        batch->end++;
        return true;
}

/* Keep an answer for ublk_port_commit_unsent(). */
void ublk_port_commit_later(struct ublk_port *port, uint16_t tag, int result);

/* Answer a request: once for every tag that has arrived. The tag may arrive again after the next submission.
 */
static inline void ublk_port_commit(struct ublk_port *port, uint16_t tag, int result)
{
        if (__builtin_expect(!port->class->commit(port, tag, result), 0))
                ublk_port_commit_later(port, tag, result);
}

/* Answer a request of a port with batches; arguments as of ublk_batch_commit(). Inline, because it is a few
 * instructions. */
static inline void ublk_port_commit_in_batch(
        struct ublk_port *port, const struct ublk_batch_element *answer, bool copies, const void *address)
{
        if (__builtin_expect(!ublk_batch_commit(&port->batch, answer, copies, address), 0))
                ublk_port_commit_later(port, answer->tag, answer->result);
}

/* Commit what there was no room for. Call in each round, before the completions are looked at. */
void ublk_port_commit_unsent(struct ublk_port *port);
/* Return whether answers wait for room, so that a round must not wait for news. */
static inline bool ublk_port_is_stuck(const struct ublk_port *port)
{
        return port->unsent.count > 0;
}

/* Call io_data_keep_uncommitted() for every answer that the driver may not have taken. Just before
 * io_data_tick(). */
void ublk_port_keep_uncommitted(const struct ublk_port *port);
