/* SPDX-License-Identifier: MIT */
/* A log of small records in memory that outlives the process.
 *
 * The first word of a slot, its seal, decides: 0 is an empty slot; else it has the length of the record and a checksum
 * of seed, slot, order and record. A record is appended to an empty slot, and its seal is stored last, in one piece. It
 * is erased by that word alone. So at each instruction every slot is empty or whole.
 *
 * The checksum stands for what order alone cannot show: bytes that no log of this memory has stored, and a seal of which
 * only a part arrived. The barriers keep the compiler from moving the stores of the record over those of the seal. No
 * more is needed: a store of a killed thread that came before another one in its program is not lost alone, and the
 * next worker starts after the kernel has seen the death of this one. */
#include "targets/kept/record_log.h"

#include "targets/kept/crc32c.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
        SEAL_MARK = 0x5e, /* of the format; another one is another format */
        SLOT_ALIGNMENT = 8,
};

struct slot {
        uint64_t seal;  /* checksum << 32 | SEAL_MARK << 16 | length */
        uint64_t order; /* of the append: rises from record to record */
        unsigned char record[];
};

struct record_log {
        char *memory;
        uint64_t seed, next_order;
        size_t stride;
        uint32_t record_size;
        unsigned slots, rejected, free_count;
        uint32_t free[]; /* slots without a record; the last is taken first */
};

static size_t stride_of(uint32_t record_size)
{
        return (sizeof(struct slot) + record_size + SLOT_ALIGNMENT - 1) / SLOT_ALIGNMENT * SLOT_ALIGNMENT;
}

size_t record_log_memory(uint32_t records, uint32_t record_size)
{
        return records * stride_of(record_size);
}

static struct slot *slot_at(const struct record_log *log, unsigned slot)
{
        assert(slot < log->slots);
        return (struct slot *)(log->memory + slot * log->stride);
}

static uint32_t length_of(uint64_t seal)
{
        return seal & UINT16_MAX;
}

static uint64_t seal_of(
        const struct record_log *log, unsigned slot, uint64_t order, const void *record, uint32_t length)
{
        const uint64_t place[] = {log->seed, (uint64_t)log->record_size << 32 | slot, order, length};
        uint32_t checksum = crc32c(crc32c(0, place, sizeof(place)), record, length);

        return (uint64_t)checksum << 32 | (uint64_t)SEAL_MARK << 16 | length;
}

/* In one piece, and not before what comes before it nor after what comes after it. */
static void set_seal(struct slot *slot, uint64_t seal)
{
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        __atomic_store_n(&slot->seal, seal, __ATOMIC_RELEASE);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static bool is_whole(const struct record_log *log, unsigned index)
{
        const struct slot *slot = slot_at(log, index);
        uint32_t length = length_of(slot->seal);

        if (length == 0 || length > log->record_size)
                return false;
        return slot->seal == seal_of(log, index, slot->order, slot->record, length);
}

static void look_at_slots(struct record_log *log)
{
        for (unsigned i = log->slots; i-- > 0;) {
                struct slot *slot = slot_at(log, i);

                if (slot->seal != 0 && is_whole(log, i)) {
                        if (slot->order >= log->next_order)
                                log->next_order = slot->order + 1;
                        continue;
                }
                if (slot->seal != 0) {
                        log->rejected++;
                        set_seal(slot, 0);
                }
                log->free[log->free_count++] = i;
        }
}

int record_log_open(void *memory, size_t size, uint64_t seed, uint32_t record_size, struct record_log **ret)
{
        size_t stride = stride_of(record_size), slots = size / stride;
        struct record_log *log;

        if (record_size == 0 || record_size > RECORD_LOG_SIZE_MAX || slots == 0 || slots > INT32_MAX)
                return -EINVAL;
        log = calloc(1, sizeof(*log) + slots * sizeof(log->free[0]));
        if (!log)
                return -ENOMEM;
        log->memory = memory;
        log->seed = seed;
        log->stride = stride;
        log->record_size = record_size;
        log->slots = (unsigned)slots;
        look_at_slots(log);
        *ret = log;
        return 0;
}

struct record_log *record_log_free(struct record_log *log)
{
        free(log);
        return NULL;
}

int record_log_append(struct record_log *log, const void *record, uint32_t length)
{
        struct slot *slot;
        unsigned index;

        if (length == 0 || length > log->record_size)
                return -EINVAL;
        if (log->free_count == 0)
                return -ENOSPC;
        index = log->free[log->free_count - 1];
        slot = slot_at(log, index);
        slot->order = log->next_order;
        memcpy(slot->record, record, length);
        /* Of what was stored, not of what is at `record`: that may be memory of a client, which changes. */
        set_seal(slot, seal_of(log, index, slot->order, slot->record, length));
        log->next_order++;
        log->free_count--;
        return (int)index;
}

void record_log_erase(struct record_log *log, unsigned slot)
{
        assert(slot_at(log, slot)->seal != 0);
        set_seal(slot_at(log, slot), 0);
        log->free[log->free_count++] = slot;
}

const void *record_log_get(const struct record_log *log, unsigned slot, uint32_t *ret_length)
{
        assert(slot_at(log, slot)->seal != 0);
        *ret_length = length_of(slot_at(log, slot)->seal);
        return slot_at(log, slot)->record;
}

struct place {
        uint64_t order;
        unsigned slot;
};

static int compare_places(const void *one, const void *other)
{
        const struct place *a = one, *b = other;

        return (a->order > b->order) - (a->order < b->order);
}

int record_log_replay(struct record_log *log, record_log_each each, void *userdata)
{
        unsigned count = 0, records = record_log_count(log);
        _cleanup_free_ struct place *places = calloc(records > 0 ? records : 1, sizeof(*places));
        int r = 0;

        if (!places)
                return -ENOMEM;
        for (unsigned i = 0; i < log->slots; i++)
                if (slot_at(log, i)->seal != 0)
                        places[count++] = (struct place){.order = slot_at(log, i)->order, .slot = i};
        assert(count == records);
        qsort(places, count, sizeof(*places), compare_places);
        for (unsigned i = 0; r >= 0 && i < count; i++) {
                uint32_t length;
                const void *record = record_log_get(log, places[i].slot, &length);

                r = each(userdata, places[i].slot, record, length);
        }
        return r < 0 ? r : 0;
}

unsigned record_log_count(const struct record_log *log)
{
        return log->slots - log->free_count;
}

unsigned record_log_slots(const struct record_log *log)
{
        return log->slots;
}

unsigned record_log_rejected(const struct record_log *log)
{
        return log->rejected;
}
