/* SPDX-License-Identifier: MIT */
/* Where a request's bytes live, and how they get there. Nothing else of the worker knows.
 *
 * copy       Each tag has a stretch of memory of this process. The driver copies a write's bytes into it
 * before it hands the request over, and a read's bytes out of it as the request is answered. user copy  The
 * same memory, but it is we who ask for that copy, with a read or write of /dev/ublkcN at a place that names
 * queue and tag: before a write is performed, and after a read was. zero copy  No memory. The request's pages
 * are a buffer of the ring, at the index of the tag. The driver has registered it when the request arrives
 * (AUTO_BUF_REG); where it cannot, we do, and take it back.
 *
 * Memory is given back by io_data_tick(): what no request has used for one or two ticks. */
#pragma once

#include "targets/worker/io/io_loop.h"
#include "ublkd/kernel/data_path.h"

struct io_data_tag {
        uint32_t recent;   /* bytes of the largest request since the last tick */
        uint32_t resident; /* bytes from the beginning that may be in memory, `recent` apart */
        bool busy;         /* a request has it */
        bool uncommitted;  /* its request was answered, and the driver may not have taken the answer yet */
};

struct io_data {
        struct data_route route;
        struct io_loop *loop;
        unsigned depth;
        char *memory;  /* one mapping; only what requests have used is resident; NULL: zero copy */
        size_t stride; /* bytes per tag, page-aligned */
        size_t size;
        struct io_data_tag *tags; /* with memory */
        bool used;                /* a request came since the last tick */
        bool gives_back;          /* whether tags that wait for a request may lose what is in their memory */
        bool races;               /* the driver may write to it at any time; see idle_pages.h */
        int pagemap;              /* with `races`; not ours */
        bool moves;               /* whether bytes have to be moved, so that requests may have to wait */
};

/* Allocate what tags of up to `max_io_size` bytes need. The loop must be set up. pagemap: as in struct
 * shared, or -1. Return 0 or -errno. */
int io_data_init(struct io_data *data, struct io_loop *loop, const struct data_route *route, unsigned depth,
        uint32_t max_io_size, int pagemap);
/* Free the memory of the tags. A zero-initialised `data` is fine. */
void io_data_destroy(struct io_data *data);

/* Return the memory of a tag, data->stride bytes; NULL: its bytes stay in the kernel. */
static inline void *io_data_of(const struct io_data *data, uint16_t tag)
{
        return data->memory ? data->memory + data->stride * tag : NULL;
}

/* Do what io_data_take() does, for tags with memory. */
static inline void io_data_take_memory(struct io_data *data, uint16_t tag, uint32_t length)
{
        struct io_data_tag *state = &data->tags[tag];

        state->busy = true;
        data->used = true;
        if (length > state->recent)
                state->recent = length;
}

/* Note that a request of `length` bytes has arrived; 0 for all but read and write. */
static inline void io_data_take(struct io_data *data, uint16_t tag, uint32_t length)
{
        if (data->tags)
                io_data_take_memory(data, tag, length);
}

/* Do what io_data_return() does, for tags with memory. */
static inline void io_data_return_memory(struct io_data *data, uint16_t tag)
{
        data->tags[tag].busy = false;
}

/* Note that the request is about to be answered; the driver copies its bytes when it gets the answer. */
static inline void io_data_return(struct io_data *data, uint16_t tag)
{
        if (data->tags)
                io_data_return_memory(data, tag);
}

static inline bool io_data_is_carried(const struct target_io *io)
{
        return io->op == IO_READ || io->op == IO_WRITE;
}

/* Return whether the driver was to register the pages of the request and did not: io_data_begin_co() will. */
static inline bool io_data_falls_back(const struct io_data *data, const struct target_io *io, bool registered)
{
        return data->route.auto_buffers && !registered && io_data_is_carried(io);
}

/* Make the bytes of a write, or the pages of either, ready for use. In the request's coroutine; suspends.
 * registered: the driver has registered the pages. Return 0 or -errno. */
int io_data_begin_co(struct io_data *data, struct target_io *io, bool registered);
/* Pass on what a read has brought. In the request's coroutine; suspends. Return the answer: `result` or
 * -errno. */
int io_data_end_co(struct io_data *data, struct target_io *io, bool registered, int result);

/* Note, before io_data_tick(), that the driver may not have taken the tag's answer yet. */
static inline void io_data_keep_uncommitted(struct io_data *data, uint16_t tag)
{
        if (data->tags)
                data->tags[tag].uncommitted = true;
}

/* Return the user_data of the completion that reports a request for a tag, on a port without batches. */
static inline uint64_t io_data_arrival(uint16_t tag)
{
        return user_data_command(tag);
}

/* Free the memory that was not used since the last call. Call it when every completion of the last submission
 * is taken, and nothing was submitted since. Return 1: there is more to free, if it is not used until the
 * next call; 0: there is not; -errno: bytes were lost, and no request may be answered any more. */
int io_data_tick(struct io_data *data);
