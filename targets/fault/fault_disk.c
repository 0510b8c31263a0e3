/* SPDX-License-Identifier: MIT */
/* A request as the disk of a fault target performs it.
 *
 * With a volatile cache a write ends when its blocks are in the cache. They are written down in their order: all of them by a
 * flush, and before the disk discards or zeroes; the oldest one where a block finds no room, as a disk does. A write with FUA goes to the
 * child, and then replaces its blocks in the cache. One request at a time uses the cache.
 *
 * A block leaves the cache only after it is in the child, or is superseded. So whenever the worker is killed, the cache and the child
 * together have what was acknowledged, and a block that is written down again is written as it was. */
#include "targets/fault/fault_disk.h"

#include "targets/scrub/scrub.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_ALIGNMENT = 4096 }; /* bytes: direct I/O of the child takes no memory that lies anywhere */

int fault_disk_begin(
        struct fault_disk *disk, bool caches, const struct target_device *device, uint32_t block_size)
{
        void *memory = device->kept.memory;
        int r;

        *disk = (struct fault_disk){.caches = caches};
        if (!caches)
                return 0;
        if (!memory)
                memory = disk->own_memory = calloc(1, FAULT_CACHE_BYTES);
        disk->block = aligned_alloc(BLOCK_ALIGNMENT,
                block_size < BLOCK_ALIGNMENT ? BLOCK_ALIGNMENT : block_size); /* both are powers of two */
        if (!memory || !disk->block) {
                fault_disk_end(disk);
                return -ENOMEM;
        }
        r = fault_cache_open(&disk->cache, memory, block_size, target_size(device));
        if (r < 0)
                fault_disk_end(disk);
        return r;
}

void fault_disk_end(struct fault_disk *disk)
{
        free(disk->block);
        free(disk->own_memory);
        *disk = (struct fault_disk){};
}

static bool divide(const struct target_io *io, struct target_cursor *cursor, struct target_part *ret)
{
        *ret = (struct target_part){.offset = io->offset, .length = io->length};
        return cursor->child++ == 0;
}

static int pass(struct target_io *io)
{
        return await_parts(io, divide);
}

static int write_down(struct fault_disk *disk, const struct target_io *io, int slot)
{
        struct target_io write = {
                .queue = io->queue,
                .op = IO_WRITE,
                .offset = disk->cache.slots[slot].block * disk->cache.block_size,
                .length = disk->cache.block_size,
                .tag = io->tag,
                .data = disk->block,
        };
        int r;

        memcpy(disk->block, fault_cache_data(&disk->cache, slot), disk->cache.block_size);
        r = pass(&write);
        if (r >= 0)
                fault_cache_drop(&disk->cache, slot);
        return r < 0 ? r : 0;
}

static int write_all_down(struct fault_disk *disk, const struct target_io *io)
{
        int slot, r = 0;

        while (r >= 0 && (slot = fault_cache_oldest(&disk->cache)) >= 0)
                r = write_down(disk, io, slot);
        return r;
}

/* Return whether the slot has what a client reads of its block. */
static bool is_newest(const struct fault_cache *cache, int slot)
{
        return fault_cache_find(cache, cache->slots[slot].block) == fault_cache_data(cache, slot);
}

/* Return the bytes of the blocks that are in the cache, each once. */
static uint64_t bytes_of_blocks(const struct fault_cache *cache)
{
        uint64_t bytes = 0;

        for (unsigned i = 0; i < cache->count; i++)
                if (cache->slots[i].order > 0 && is_newest(cache, (int)i))
                        bytes += cache->block_size;
        return bytes;
}

/* size: bytes to report; 0: none. */
static void lose(struct fault_disk *disk, int slot, struct target_action *action, uint32_t size)
{
        if (size > 0)
                target_action_found(action, disk->cache.slots[slot].block * size, size);
        fault_cache_drop(&disk->cache, slot);
}

/* Finish a power cut that has begun. action: that reports it; NULL: none does. A version that another one follows is not lost: the
 * disk would not have it without the cut either. */
static int finish_cut(struct fault_disk *disk, const struct target_io *io, struct target_action *action)
{
        uint64_t done = 0, total = action ? bytes_of_blocks(&disk->cache) : 0;
        int slot, r = 0;

        if (disk->cache.head->cut == 0)
                return 0;
        while (r >= 0 && (slot = fault_cache_oldest(&disk->cache)) >= 0) {
                uint32_t size = action && is_newest(&disk->cache, slot) ? disk->cache.block_size : 0;

                if (fault_cache_survives(&disk->cache, slot))
                        r = write_down(disk, io, slot);
                else
                        lose(disk, slot, action, size);
                done += r >= 0 ? size : 0;
                if (action)
                        target_action_progress(action, done, total);
        }
        if (r >= 0)
                __atomic_store_n(&disk->cache.head->cut, UINT64_C(0), __ATOMIC_RELEASE);
        return r;
}

static uint64_t first_block(const struct fault_disk *disk, const struct target_io *io)
{
        return io->offset / disk->cache.block_size;
}

static int read_through(struct fault_disk *disk, struct target_io *io)
{
        uint32_t size = disk->cache.block_size;
        int r = pass(io);

        for (uint32_t done = 0; r >= 0 && done < io->length; done += size) {
                const void *newer = fault_cache_find(&disk->cache, first_block(disk, io) + done / size);

                if (newer)
                        memcpy((char *)io->data + done, newer, size);
        }
        return r;
}

static int write_through(struct fault_disk *disk, struct target_io *io)
{
        uint32_t size = disk->cache.block_size;
        int r = pass(io);

        for (uint32_t done = 0; r >= 0 && done < io->length; done += size)
                fault_cache_drop_block(&disk->cache, first_block(disk, io) + done / size);
        return r;
}

static int write_into_cache(struct fault_disk *disk, struct target_io *io)
{
        uint32_t size = disk->cache.block_size;
        int r = 0;

        for (uint32_t done = 0; done < io->length; done += size) {
                const char *data = (char *)io->data + done;

                while (!fault_cache_put(&disk->cache, first_block(disk, io) + done / size, data)) {
                        r = write_down(disk, io, fault_cache_oldest(&disk->cache));
                        if (r < 0)
                                return r;
                }
        }
        return (int)io->length;
}

static int perform_cached(struct fault_disk *disk, struct target_io *io)
{
        uint32_t size = disk->cache.block_size;
        int r = finish_cut(disk, io, NULL);

        if (r >= 0 && (io->offset % size != 0 || io->length % size != 0))
                r = -EIO; /* never a neighbour's bytes */
        if (r < 0)
                return r;
        if (io->op == IO_READ)
                return read_through(disk, io);
        if (io->op == IO_WRITE)
                return io->flags & IO_FUA ? write_through(disk, io) : write_into_cache(disk, io);
        r = write_all_down(disk, io);
        return r < 0 ? r : pass(io);
}

int fault_disk_scan(struct target_action *action, struct target_queue *queue, uint64_t offset,
        uint32_t length, void *memory)
{
        return scrub_children(action, queue, divide, offset, length, memory);
}

int fault_disk_perform(struct fault_disk *disk, struct target_io *io)
{
        int r;

        if (!disk->caches)
                return pass(io);
        await_mutex(io->queue, &disk->mutex);
        r = perform_cached(disk, io);
        co_mutex_unlock(&disk->mutex);
        return r;
}

int fault_disk_cut(
        struct fault_disk *disk, struct target_io *io, uint64_t random, struct target_action *action)
{
        int r;

        if (!disk->caches)
                return 0;
        r = finish_cut(disk, io, NULL);
        if (r < 0)
                return r;
        __atomic_store_n(&disk->cache.head->cut, random | 1, __ATOMIC_RELEASE);
        return finish_cut(disk, io, action);
}
