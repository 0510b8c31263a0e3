/* SPDX-License-Identifier: MIT */
/* The volatile cache of a fault disk. It looks through all slots: a disk for tests may be slow. */
#include "targets/fault/fault_cache.h"

#include "targets/fault/fault_rules.h"

#include <errno.h>
#include <string.h>

#define ORDER_MAX (UINT64_MAX / 2)

/* The blocks that are there lie by the size that they were written with. Return 0 where no cache has that size. */
static uint32_t size_of_blocks(const struct fault_cache_head *head, uint32_t wanted)
{
        uint64_t found = head->block_size;

        if (found == 0) /* of a new cache, or of an older program, which knew one size */
                return wanted;
        return found >= FAULT_BLOCK_SIZE_MIN && found <= wanted && (found & (found - 1)) == 0
                       ? (uint32_t)found
                       : 0;
}

/* Find the newest of the blocks. Each must be one of the disk. */
static int read_slots(struct fault_cache *cache, uint64_t size)
{
        uint64_t blocks = (size > 0 ? size : INT64_MAX) / cache->block_size;

        for (unsigned i = 0; i < cache->count; i++) {
                const struct fault_slot *slot = &cache->slots[i];

                if (slot->order > 0 && (slot->order > ORDER_MAX || slot->block >= blocks))
                        return -ENODATA;
                if (slot->order > cache->order)
                        cache->order = slot->order;
        }
        return 0;
}

int fault_cache_open(struct fault_cache *cache, void *memory, uint32_t block_size, uint64_t size)
{
        uint32_t block = size_of_blocks(memory, block_size);
        unsigned count;
        int r;

        if (block == 0)
                return -ENODATA;
        count = (unsigned)((FAULT_CACHE_BYTES - sizeof(struct fault_cache_head))
                           / (block + sizeof(struct fault_slot)));
        *cache = (struct fault_cache){.head = memory, .block_size = block, .count = count};
        cache->slots = (struct fault_slot *)(cache->head + 1);
        cache->data = (char *)(cache->slots + count);
        r = read_slots(cache, size);
        if (r >= 0)
                cache->head->block_size = block;
        return r;
}

static char *data_of(const struct fault_cache *cache, unsigned slot)
{
        return cache->data + (size_t)slot * cache->block_size;
}

bool fault_cache_put(struct fault_cache *cache, uint64_t block, const void *data)
{
        unsigned slot = 0;

        while (slot < cache->count && cache->slots[slot].order > 0)
                slot++;
        if (slot == cache->count)
                return false;
        memcpy(data_of(cache, slot), data, cache->block_size);
        cache->slots[slot].block = block;
        __atomic_store_n(&cache->slots[slot].order, ++cache->order, __ATOMIC_RELEASE);
        return true;
}

const void *fault_cache_find(const struct fault_cache *cache, uint64_t block)
{
        int newest = -1;

        for (unsigned i = 0; i < cache->count; i++)
                if (cache->slots[i].order > 0 && cache->slots[i].block == block
                        && (newest < 0 || cache->slots[i].order > cache->slots[newest].order))
                        newest = (int)i;
        return newest < 0 ? NULL : data_of(cache, (unsigned)newest);
}

int fault_cache_oldest(const struct fault_cache *cache)
{
        int oldest = -1;

        for (unsigned i = 0; i < cache->count; i++)
                if (cache->slots[i].order > 0
                        && (oldest < 0 || cache->slots[i].order < cache->slots[oldest].order))
                        oldest = (int)i;
        return oldest;
}

const void *fault_cache_data(const struct fault_cache *cache, int slot)
{
        return data_of(cache, (unsigned)slot);
}

void fault_cache_drop(struct fault_cache *cache, int slot)
{
        __atomic_store_n(&cache->slots[slot].order, UINT64_C(0), __ATOMIC_RELEASE);
}

/* The oldest first: a worker that is killed meanwhile leaves the newest, never an older one in its place. */
void fault_cache_drop_block(struct fault_cache *cache, uint64_t block)
{
        for (;;) {
                int oldest = -1;

                for (unsigned i = 0; i < cache->count; i++)
                        if (cache->slots[i].order > 0 && cache->slots[i].block == block
                                && (oldest < 0 || cache->slots[i].order < cache->slots[oldest].order))
                                oldest = (int)i;
                if (oldest < 0)
                        return;
                fault_cache_drop(cache, oldest);
        }
}

/* By its number in the order, so that a worker that goes on with a power cut decides as the one before it. */
bool fault_cache_survives(const struct fault_cache *cache, int slot)
{
        return fault_random(cache->head->cut, cache->slots[slot].order) & 1;
}
