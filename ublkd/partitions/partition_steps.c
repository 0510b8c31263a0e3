/* SPDX-License-Identifier: MIT */
/* What turns the partitions that the kernel shows into those of the table.
 *
 * The kernel resizes a partition that is open, also to less, under a mounted file system. So only growing is a resize
 * here. Every other change is DELETE and ADD, and the kernel refuses the DELETE of a partition that is open. */
#include "ublkd/partitions/partition_steps.h"

static const struct partition *find(const struct partition_list *list, uint32_t number)
{
        for (size_t i = 0; i < list->count; i++)
                if (list->items[i].number == number)
                        return &list->items[i];
        return NULL;
}

static bool is_same(const struct partition *one, const struct partition *other)
{
        return one->start == other->start && one->size == other->size;
}

static bool only_grows(const struct partition *from, const struct partition *to)
{
        return from->start == to->start && from->size < to->size;
}

static void add(
        struct partition_steps *steps, enum partition_action action, const struct partition *partition)
{
        steps->items[steps->count++] = (struct partition_step){.action = action, .partition = *partition};
}

void partition_steps_find(const struct partition_list *present, const struct partition_list *wanted,
        const bool leave[static PARTITION_NUMBER_MAX + 1], struct partition_steps *ret)
{
        ret->count = 0;
        for (size_t i = 0; i < present->count; i++) {
                const struct partition *is = &present->items[i], *goal = find(wanted, is->number);

                if (!leave[is->number] && !(goal && (is_same(is, goal) || only_grows(is, goal))))
                        add(ret, PARTITION_DELETE, is);
        }
        for (size_t i = 0; i < wanted->count; i++) {
                const struct partition *is = find(present, wanted->items[i].number);

                if (is && only_grows(is, &wanted->items[i]))
                        add(ret, PARTITION_GROW, &wanted->items[i]);
        }
        for (size_t i = 0; i < wanted->count; i++) {
                const struct partition *goal = &wanted->items[i], *is = find(present, goal->number);

                if (!is || !(is_same(is, goal) || only_grows(is, goal)))
                        add(ret, PARTITION_ADD, goal);
        }
}
