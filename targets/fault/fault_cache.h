/* SPDX-License-Identifier: MIT */
/* The volatile cache of a fault disk: blocks that were written and not flushed, each version of each block, in their order. It
 * lies in kept memory, so a worker that is killed loses nothing; only a power cut does. Does no I/O. On one thread.
 *
 * The worker may be killed between any two stores: a block is there as soon as its number in the order is. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Bytes: of the memory of a cache, and of the smallest block that one has. */
enum { FAULT_CACHE_BYTES = 4 << 20, FAULT_BLOCK_SIZE_MIN = 512 };

struct fault_slot {
        uint64_t order; /* 1 is the oldest; 0: the slot is empty */
        uint64_t block; /* its number on the disk */
};

struct fault_cache_head {
        uint64_t cut;        /* what a power cut that has begun chooses by; 0: none has */
        uint64_t block_size; /* bytes; 0 where an older program has made the cache */
        uint64_t unused[6];
};

/* Zero-initialise. */
struct fault_cache {
        struct fault_cache_head *head;
        struct fault_slot *slots;
        char *data;
        uint32_t block_size; /* bytes */
        unsigned count;      /* of slots */
        uint64_t order;      /* of the newest block */
};

/* Take FAULT_CACHE_BYTES of memory, which are zeroes or what an earlier cache has left there. block_size: of a new one; a cache
 * that is there goes on with its own (cache->block_size) if that is not larger. size: bytes of the disk; 0: not known. Return 0, or
 * -ENODATA, with the memory unchanged, where it is not what a cache of this disk has left. */
int fault_cache_open(struct fault_cache *cache, void *memory, uint32_t block_size, uint64_t size);
/* Put a block. Return false if there is no room. */
bool fault_cache_put(struct fault_cache *cache, uint64_t block, const void *data);
/* Return the newest version of a block; NULL: the cache has none. */
const void *fault_cache_find(const struct fault_cache *cache, uint64_t block);
/* Return the slot of the oldest block; -1: the cache is empty. */
int fault_cache_oldest(const struct fault_cache *cache);
/* Return the bytes of a slot. */
const void *fault_cache_data(const struct fault_cache *cache, int slot);
/* Empty a slot; fault_cache_drop_block(): all that have a version of the block. */
void fault_cache_drop(struct fault_cache *cache, int slot);
void fault_cache_drop_block(struct fault_cache *cache, uint64_t block);
/* Return whether the block of a slot reaches the disk in the power cut that has begun. */
bool fault_cache_survives(const struct fault_cache *cache, int slot);
