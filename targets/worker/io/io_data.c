/* SPDX-License-Identifier: MIT */
/* Where a request's bytes live, and how they get there.
 *
 * On giving memory back. With plain copy the driver may put the bytes of a write into a tag's memory at any
 * time after the tag was handed to it, and reports it afterwards. To drop the memory in between would lose
 * them. The driver does so in task work of this very thread; on a ring with DEFER_TASKRUN that runs only
 * while we are inside io_uring_enter(). So when all completions are taken, and before the next submission,
 * nothing can be on its way. On other rings it runs at any time: see idle_pages.c. With user copy it is we
 * who move the bytes, and a tag without a request has none. */
#include "targets/worker/io/io_data.h"
#include "targets/worker/io/await.h"
#include "targets/worker/io/idle_pages.h"
#include "targets/worker/io/ublk_command.h"
#include "ublkd/base/cleanup.h"

#include <string.h>
#include <sys/mman.h>

static int map_memory(struct io_data *data, uint32_t max_io_size)
{
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        size_t stride = (max_io_size + page - 1) / page * page;
        void *memory;

        memory = mmap(NULL, stride * data->depth, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
                return -errno;
        /* A huge page for the first 4 KiB of a tag would make an idle disk as big as a busy one. EINVAL: no
         * such pages. */
        (void)madvise(memory, stride * data->depth, MADV_NOHUGEPAGE);
        data->memory = memory;
        data->stride = stride;
        data->size = stride * data->depth;
        data->tags = calloc(data->depth, sizeof(*data->tags));
        return data->tags ? 0 : -ENOMEM;
}

int io_data_init(struct io_data *data, struct io_loop *loop, const struct data_route *route, unsigned depth,
        uint32_t max_io_size, int pagemap)
{
        bool races = route->path == DATA_PATH_COPY && !(loop->ring.flags & IORING_SETUP_DEFER_TASKRUN);
        struct io_data made = {
                .route = *route,
                .loop = loop,
                .depth = depth,
                /* Batches, which report many arrivals at once, are younger than DEFER_TASKRUN. */
                .gives_back = !races || (pagemap >= 0 && !route->batch),
                .races = races,
                .pagemap = pagemap,
                .moves = route->path == DATA_PATH_USER_COPY || route->path == DATA_PATH_ZERO_COPY,
        };
        int r = route->path == DATA_PATH_ZERO_COPY ? io_uring_register_buffers_sparse(&loop->ring, depth)
                                                   : map_memory(&made, max_io_size);

        if (r < 0)
                io_data_destroy(&made);
        else
                *data = made;
        return r;
}

void io_data_destroy(struct io_data *data)
{
        if (data->memory)
                (void)munmap(data->memory, data->size);
        free(data->tags);
        *data = (struct io_data){};
}

/* ---- user copy ---- */

/* The place in /dev/ublkcN that is the data of a request: ublk_pos_to_hwq() and its neighbours in the driver.
 */
static uint64_t place_of(const struct target_io *io)
{
        enum { TAG_SHIFT = 25, QUEUE_SHIFT = 41 };

        return UBLKSRV_IO_BUF_OFFSET + ((uint64_t)io->queue->index << QUEUE_SHIFT)
               + ((uint64_t)io->tag << TAG_SHIFT);
}

/* From the request into our memory, or (writes) the other way. */
static int move_co(struct io_data *data, const struct target_io *io, bool writes)
{
        int r = await_transfer(data->loop, &(struct transfer){.file = IO_LOOP_COMMAND_FILE,
                                                   .address = (uintptr_t)io->data,
                                                   .length = io->length,
                                                   .offset = place_of(io),
                                                   .writes = writes});

        return r < 0 ? r : 0;
}

/* ---- zero copy, where the driver has not registered the pages ---- */

static int register_once(struct io_data *data, const struct target_io *io, uint32_t operation)
{
        const struct ublksrv_io_cmd command = {
                .q_id = (uint16_t)io->queue->index, .tag = io->tag, .addr = io->tag};
        struct io_uring_sqe *sqe = await_sqe(data->loop);

        ublk_command_prepare(data->loop, sqe, operation, &command);
        return await_operation(data->loop, sqe);
}

/* ENOMEM passes: it is answered like a lack of anything else that the kernel is out of for a moment. */
static int register_co(struct io_data *data, const struct target_io *io)
{
        struct retry retry = {};
        int r;

        do {
                r = register_once(data, io, UBLK_U_IO_REGISTER_IO_BUF);
        } while (retry_wanted(data->loop, &retry, r == -ENOMEM ? -EAGAIN : r));
        return r;
}

/* ---- around a request ---- */

int io_data_begin_co(struct io_data *data, struct target_io *io, bool registered)
{
        if (!io_data_is_carried(io))
                return 0;
        if (data->route.path == DATA_PATH_USER_COPY)
                return io->op == IO_WRITE ? move_co(data, io, false) : 0;
        return registered ? 0 : register_co(data, io);
}

int io_data_end_co(struct io_data *data, struct target_io *io, bool registered, int result)
{
        int r = 0;

        if (!io_data_is_carried(io))
                return result;
        if (data->route.path == DATA_PATH_USER_COPY)
                r = io->op == IO_READ && result >= 0 ? move_co(data, io, true) : 0;
        else if (!registered)
                r = register_once(data, io, UBLK_U_IO_UNREGISTER_IO_BUF);
        return result >= 0 && r < 0 ? r : result;
}

/* ---- giving memory back ---- */

/* What the tag has to keep: all that it has while its bytes are needed, else what the last ones have used. */
static uint32_t kept(const struct io_data_tag *tag, uint32_t page)
{
        uint32_t most = tag->resident > tag->recent ? tag->resident : tag->recent;

        return tag->busy || tag->uncommitted ? most : (tag->recent + page - 1) & -page;
}

/* As idle_pages_drop(). */
static int drop(struct io_data *data, uint16_t index, uint32_t from, uint32_t to)
{
        char *address = (char *)io_data_of(data, index) + from;
        const struct idle_pages_watch watch = {
                .ring = &data->loop->ring, .user_data = io_data_arrival(index), .pagemap = data->pagemap};

        if (data->races)
                return idle_pages_drop(address, to - from, &watch);
        return madvise(address, to - from, MADV_DONTNEED_LOCKED) < 0 ? -errno : 0;
}

static int trim(struct io_data *data, uint16_t index, uint32_t page)
{
        struct io_data_tag *tag = &data->tags[index];
        uint32_t keep = kept(tag, page);
        int r = tag->resident > keep ? drop(data, index, keep, tag->resident) : 0;

        if (r == -ENOTRECOVERABLE)
                return r;
        if (r != 0)
                return 0; /* has a request, or there is no memory to spare for the split: another tick */
        tag->resident = keep;
        if (!tag->busy)
                tag->recent = 0;
        return 0;
}

int io_data_tick(struct io_data *data)
{
        uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
        bool more = false;

        if (!data->tags || !data->gives_back)
                return 0;
        data->used = false;
        for (unsigned i = 0; i < data->depth; i++) {
                int r = trim(data, (uint16_t)i, page);

                if (r < 0)
                        return r;
                data->tags[i].uncommitted = false;
                more |= data->tags[i].resident > 0;
        }
        return more;
}
