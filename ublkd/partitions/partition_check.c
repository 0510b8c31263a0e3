/* SPDX-License-Identifier: MIT */
/* Which entries of a partition table may be shown.
 *
 * Of two entries with the same bytes the first is shown: no caller may get two names for the same data, and a
 * partition that is in use is not moved because a later entry claims its place. */
#include "ublkd/partitions/partition_check.h"

#include <string.h>

/* Written so that no sum can wrap. */
static bool is_within(const struct partition *entry, const struct partition_disk *disk)
{
        return entry->start < disk->sectors && entry->size <= disk->sectors - entry->start;
}

/* Both lie within the disk, so the sums do not wrap. */
static bool overlap(const struct partition *one, const struct partition *other)
{
        return one->start < other->start + other->size && other->start < one->start + one->size;
}

static bool overlaps_any(const struct partition *entry, const struct partition_list *list)
{
        for (size_t i = 0; i < list->count; i++)
                if (overlap(entry, &list->items[i]))
                        return true;
        return false;
}

static bool has_number(const struct partition_verdict *verdict, uint32_t number)
{
        for (size_t i = 0; i < verdict->good.count; i++)
                if (verdict->good.items[i].number == number)
                        return true;
        return verdict->leave[number];
}

/* The order matters: each check relies on those before it. */
static enum partition_fault judge(const struct partition *entry, const struct partition_disk *disk,
        const struct partition_verdict *so_far)
{
        if (entry->number == 0 || entry->number > PARTITION_NUMBER_MAX)
                return PARTITION_BAD_NUMBER;
        if (has_number(so_far, entry->number))
                return PARTITION_TWICE;
        if (entry->size == 0)
                return PARTITION_EMPTY;
        if (!is_within(entry, disk))
                return PARTITION_BEYOND_END;
        if (entry->start % disk->block_sectors != 0 || entry->size % disk->block_sectors != 0)
                return PARTITION_UNALIGNED;
        return overlaps_any(entry, &so_far->good) ? PARTITION_OVERLAPS : PARTITION_GOOD;
}

static void note_fault(
        struct partition_verdict *verdict, const struct partition *entry, enum partition_fault fault)
{
        if (verdict->faults++ == 0) {
                verdict->fault = fault;
                verdict->number = entry->number;
        }
        if (fault != PARTITION_BAD_NUMBER && fault != PARTITION_TWICE)
                verdict->leave[entry->number] = true;
}

void partition_check(const struct partition *entries, size_t count, const struct partition_disk *disk,
        struct partition_verdict *ret)
{
        memset(ret, 0, sizeof(*ret));
        for (size_t i = 0; i < count; i++) {
                enum partition_fault fault = judge(&entries[i], disk, ret);

                if (fault == PARTITION_GOOD) /* numbers are unique, so the list has room */
                        ret->good.items[ret->good.count++] = entries[i];
                else
                        note_fault(ret, &entries[i], fault);
        }
}

const char *partition_fault_to_string(enum partition_fault fault)
{
        static const char *const phrases[_PARTITION_FAULT_MAX] = {
                [PARTITION_GOOD] = "is valid",
                [PARTITION_BAD_NUMBER] = "has a number that the kernel does not take",
                [PARTITION_TWICE] = "has the number of an earlier one",
                [PARTITION_EMPTY] = "has no size",
                [PARTITION_BEYOND_END] = "ends beyond the end of the disk",
                [PARTITION_UNALIGNED] = "begins or ends inside a block of the disk",
                [PARTITION_OVERLAPS] = "overlaps an earlier one",
        };

        return fault < _PARTITION_FAULT_MAX ? phrases[fault] : "is not valid";
}
