/* SPDX-License-Identifier: MIT */
/* The backing stores of a tree of targets. */
#include "targets/worker/disk/stack_stores.h"

#include "targets/worker/disk/stack_internal.h"

#include <errno.h>
#include <unistd.h>

static bool has_store(const struct stack *stack, unsigned number)
{
        return target_node_has_store(&stack->config->tree->nodes[number]);
}

static bool has_stores(const struct stack *stack)
{
        return target_tree_store(stack->config->tree) >= 0;
}

/* ---- opening ---- */

/* Another store than one that the disk lies in as it is can be locked and recognised only by the list of CONFIG. */
int stack_stores_check(const struct stack *stack, bool line, struct problem_list *problems)
{
        int r;

        if (stack->config->stores || stack->config->stores_anywhere || line || !has_stores(stack))
                return 0;
        r = problem_add(problems, EACCES, "/target", "BackingFileNotPermitted",
                "A backing store among the children of a target can be neither locked nor recognised; "
                "give it as the \"child\" of linear targets, or alone.");
        return r < 0 ? r : -EACCES;
}

/* What is expected of the store; nothing of what open() found another time. */
static struct target_store begin(struct target_store *listed)
{
        const struct target_store store = *listed;

        listed->given = -1;
        return (struct target_store){
                .given = store.given,
                .expected = store.expected,
                .expected_in_this_boot = store.expected_in_this_boot,
                .served = store.served,
                .has_data = store.has_data,
                .shared = store.shared,
                .is_one_of_several = store.is_one_of_several,
                .user = store.user,
                .kept = -1,
        };
}

void stack_stores_give(struct stack *stack, struct target_device *disk, bool line)
{
        struct target_store *next = stack->config->stores;
        int only = target_tree_store(stack->config->tree);

        for (unsigned i = 0; next && i < stack_count(stack); i++)
                if (has_store(stack, i))
                        stack->devices[i].store = begin(next++);
        if (stack->config->stores || only < 0 || !line)
                return;
        stack->devices[only].store = disk->store;
        disk->store.given = -1;
}

/* ---- where the disk ends ---- */

/* Where something ends. */
struct end {
        bool known;
        uint64_t bytes;
};

/* Return how large a node is by the sizes of the nodes, or, of a leaf, by the end of its store; 0: as large as asked for, or not
 * known. */
static uint64_t size_by_ends(
        const struct stack *stack, unsigned number, const struct end *ends, const uint64_t *sizes)
{
        const struct target_node *node = &stack->config->tree->nodes[number];
        const struct target_device *device = &stack->devices[number];

        if (node->child_count > 0)
                return device->target->size(device, &sizes[node->first_child]);
        if (!ends[number].known)
                return 0;
        return ends[number].bytes > device->linear_offset ? ends[number].bytes - device->linear_offset : 1;
}

/* Return where the disk ends by the ends of the stores of its nodes, in bytes of the disk. A part with a length that is not there ends
 * the disk at once: behind it others may have grown. size: of the disk; 0: not known. */
static struct end end_of_disk(const struct stack *stack, const struct end *ends, uint64_t size)
{
        uint64_t sizes[TARGET_NODES_MAX] = {};
        bool is_short = false, any = false;

        for (unsigned i = stack_count(stack); i-- > 0;) {
                const struct target_device *device = &stack->devices[i];
                uint64_t needed = i == 0 ? size : device->wanted_offset + device->wanted_size;

                sizes[i] = size_by_ends(stack, i, ends, sizes);
                if ((i == 0 || device->wanted_size != 0) && sizes[i] != 0 && sizes[i] < needed)
                        is_short = true;
                any = any || ends[i].known;
        }
        return (struct end){
                .known = any && (sizes[0] != 0 || is_short),
                .bytes = is_short && sizes[0] >= size ? 0 : sizes[0],
        };
}

/* For disk_is_cut(). */
static void note_end(const struct stack *stack, struct target_device *disk, uint64_t size)
{
        struct end ends[TARGET_NODES_MAX] = {}, end;

        for (unsigned i = 0; i < stack_count(stack); i++)
                ends[i] = (struct end){stack->devices[i].store.end_known, stack->devices[i].store.end};
        end = end_of_disk(stack, ends, size);
        disk->store.end_known = end.known;
        disk->store.end = end.bytes;
}

/* The size first: the disk grows only after its stores have grown. */
bool stack_reaches_end(const struct target_device *disk, uint64_t *ret)
{
        const struct stack *stack = disk->state;
        uint64_t size = target_size(disk);
        struct end ends[TARGET_NODES_MAX] = {}, end;

        for (unsigned i = 0; i < stack_count(stack); i++) {
                const struct target_device *device = &stack->devices[i];
                off_t there = device->linear && has_store(stack, i)
                                      ? lseek(device->files[device->linear_file], 0, SEEK_END)
                                      : -1; /* no code uses the position */

                if (there >= 0)
                        ends[i] = (struct end){true, (uint64_t)there};
        }
        end = end_of_disk(stack, ends, size);
        if (!end.known || end.bytes >= size)
                return true;
        *ret = end.bytes;
        return false;
}

/* Return whether all of it can be looked at in each round. */
static bool ends_are_known(const struct stack *stack)
{
        for (unsigned i = 0; i < stack_count(stack); i++)
                if (has_store(stack, i) && !stack->devices[i].linear_end_known)
                        return false;
        return has_stores(stack);
}

/* ---- what was found ---- */

/* What the core knows of the store, if the disk lies in it as it is: as of a disk without the targets above. */
static void take_line(const struct stack *stack, struct target_device *disk, int store)
{
        const struct target_device *leaf = &stack->devices[store];

        disk->store = leaf->store;
        disk->linear_offset = leaf->linear_offset + leaf->wanted_offset;
        disk->linear = leaf->linear;
        disk->linear_file = stack->nodes[store].first_file + leaf->linear_file;
        disk->linear_end_known = leaf->linear_end_known;
        for (unsigned i = 0; i < (unsigned)store; i++)
                if (stack->devices[i].target->desc->flags & TARGET_SEES_ALL)
                        disk->by_callbacks = true;
        disk->linear_in_memory = leaf->linear_in_memory && !disk->by_callbacks;
}

/* Note in the list what was found, also of those that were not opened any more: which of the stores was refused shows there. */
static void take_list(const struct stack *stack, struct target_device *disk)
{
        struct target_store *next = stack->config->stores;

        disk->store.as_given = true;
        for (unsigned i = 0; i < stack_count(stack); i++) {
                struct target_store *store = &stack->devices[i].store;

                if (!has_store(stack, i))
                        continue;
                store->given = close_fd(store->given);
                disk->store.as_given = disk->store.as_given && store->as_given;
                *next++ = *store;
        }
}

void stack_stores_take(const struct stack *stack, struct target_device *disk, bool line)
{
        int only = target_tree_store(stack->config->tree);

        if (stack->config->stores)
                take_list(stack, disk);
        if (only >= 0 && line) {
                take_line(stack, disk, only);
                return;
        }
        disk->linear_end_known = ends_are_known(stack);
        note_end(stack, disk, disk->wanted_size);
}

void stack_stores_measured(const struct stack *stack, struct target_device *disk)
{
        int only = target_tree_store(stack->config->tree);

        if (only < 0 || !disk->linear) {
                note_end(stack, disk, target_size(disk));
                return;
        }
        disk->store.end = stack->devices[only].store.end;
        disk->store.end_known = stack->devices[only].store.end_known;
}

void stack_stores_closed(const struct stack_config *config)
{
        for (unsigned i = 0; i < config->store_count; i++)
                config->stores[i].kept = -1;
}

/* ---- each of them ---- */

unsigned stack_witnesses(const struct target_device *disk, int ret[static TARGET_NODES_MAX])
{
        const struct stack *stack = disk->state;
        unsigned count = 0;

        for (unsigned i = 0; i < stack_count(stack); i++)
                if (stack->devices[i].store.kept >= 0)
                        ret[count++] = stack->devices[i].store.kept;
        return count;
}

/* A store has a longer part than it needs where the disk is smaller than the tree. */
static struct backing_range range_of(const struct target_device *leaf)
{
        uint64_t start = leaf->linear_offset + leaf->wanted_offset,
                 end = leaf->wanted_size != 0 ? start + leaf->wanted_size
                                              : leaf->linear_offset + target_size(leaf);

        return (struct backing_range){
                .fd = leaf->store.kept >= 0 ? leaf->store.kept : leaf->files[leaf->linear_file],
                .start = start,
                .end = end > start ? end : start};
}

unsigned stack_ranges(const struct target_device *disk, struct disk_range ret[static TARGET_NODES_MAX])
{
        const struct stack *stack = disk->state;
        unsigned count = 0;

        for (unsigned i = 0; i < stack_count(stack); i++)
                if (stack->devices[i].linear)
                        ret[count++] = (struct disk_range){.range = range_of(&stack->devices[i]), .node = i};
        return count;
}
