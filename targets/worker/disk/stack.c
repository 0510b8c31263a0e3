/* SPDX-License-Identifier: MIT */
/* A tree of targets as one target. Nodes have the numbers of the tree: a parent has a lower one than its children, which follow one
 * another. So what goes from the leaves up counts down. */
#include "targets/worker/disk/stack.h"

#include "targets/target_action.h"
#include "targets/worker/disk/stack_internal.h"
#include "targets/worker/disk/stack_kept.h"
#include "targets/worker/disk/stack_rules.h"
#include "targets/worker/disk/stack_stores.h"

#include <assert.h>
#include <string.h>

struct stack_queue {
        struct target_queue *queues; /* one for each node */
        unsigned started;            /* of these, from the last one down */
};

/* ---- opening ---- */

static void set_up_node(struct stack *stack, const struct target_device *disk, unsigned number)
{
        const struct target_node *node = &stack->config->tree->nodes[number];

        stack->devices[number] = (struct target_device){
                .target = stack->config->targets[number],
                .name = disk->name,
                .config = node->options,
                .read_only = disk->read_only,
                .wanted_block_size = disk->wanted_block_size,
                .is_below = number > 0,
                .children = &stack->devices[node->first_child],
                .child_count = node->child_count,
                .has_list = node->child_count > 0 && stack->config->tree->nodes[node->first_child].index >= 0,
                .store = {.given = -1,
                          .kept = -1,
                          .served = disk->store.served,
                          .has_data = disk->store.has_data},
        };
        if ((int)number == target_tree_live_node(stack->config->tree))
                stack->devices[number].live = disk->live;
}

/* Return whether the node just leaves out what is before its part of its child. */
static bool is_part(const struct target_device *device, uint64_t *ret)
{
        return device->child_count == 1 && (device->target->desc->flags & TARGET_IS_PART)
               && device->target->is_part && device->target->is_part(device, ret);
}

/* Hand the range that is wanted of a disk down, as far as it is one range of one child. */
static void want_parts(struct stack *stack, const struct target_device *disk)
{
        stack->devices[0].wanted_size = disk->wanted_size;
        for (unsigned i = 0; i < stack_count(stack); i++) {
                const struct target_device *device = &stack->devices[i];
                struct target_device *child = &stack->devices[stack->config->tree->nodes[i].first_child];
                uint64_t offset, own, unlimited = 0;

                if (!is_part(device, &offset))
                        continue;
                own = device->target->size(device, &unlimited); /* what is before wanted_offset is left out */
                child->wanted_offset = device->wanted_offset + offset;
                child->wanted_size = device->wanted_size != 0      ? device->wanted_size
                                     : own > device->wanted_offset ? own - device->wanted_offset
                                                                   : 0;
        }
}

static struct stack *stack_new(const struct target_device *disk)
{
        const struct stack_config *config = disk->config;
        struct stack *stack = disk->state;

        stack->config = config;
        stack->devices = calloc(config->tree->count, sizeof(*stack->devices));
        stack->nodes = calloc(config->tree->count, sizeof(*stack->nodes));
        if (!stack->devices || !stack->nodes)
                return NULL;
        for (unsigned i = 0; i < config->tree->count; i++)
                set_up_node(stack, disk, i);
        want_parts(stack, disk);
        return stack;
}

/* The geometry of the children, for the node to change. */
static void combine_children(struct stack *stack, unsigned number)
{
        const struct target_node *node = &stack->config->tree->nodes[number];
        const struct target_geometry *children[TARGET_NODES_MAX];
        uint64_t sizes[TARGET_NODES_MAX];

        if (node->child_count == 0)
                return;
        for (unsigned i = 0; i < node->child_count; i++) {
                children[i] = &stack->nodes[node->first_child + i].geometry;
                sizes[i] = children[i]->size;
        }
        stack_rules_combine(children, node->child_count, &stack->nodes[number].geometry);
        stack->nodes[number].geometry.size =
                stack->devices[number].target->size(&stack->devices[number], sizes);
}

/* Open a node whose children are open. */
static int open_node(struct stack *stack, unsigned number, struct problem_list *problems)
{
        struct target_device *device = &stack->devices[number];
        const struct target *target = device->target;
        int r;

        combine_children(stack, number);
        if (target->device_size > 0) {
                device->state = calloc(1, target->device_size);
                if (!device->state)
                        return -ENOMEM;
        }
        r = target->open(device, &stack->nodes[number].geometry, problems);
        stack->nodes[number].is_open = r >= 0;
        device->size = stack->nodes[number].geometry.size;
        return r;
}

/* Take what the node has found out of its geometry. Return 0 or -errno. */
static int take_findings(struct stack *stack, unsigned number, struct target_geometry *ret)
{
        struct target_geometry *geometry = &stack->nodes[number].geometry;
        int r = backing_claims_append(&ret->claims, &geometry->claims);

        if (r >= 0)
                r = target_tree_report(stack->config->tree, number, &geometry->sharing, &ret->sharing);
        if (!ret->stable_path)
                ret->stable_path = TAKE_PTR(geometry->stable_path);
        backing_claims_clear(&geometry->claims);
        problem_list_clear(&geometry->sharing);
        free(geometry->stable_path);
        geometry->stable_path = NULL;
        return r;
}

/* Two writers of one byte would be in one disk: at two of its places. */
static int check_twice(const struct stack *stack, unsigned number, const struct target_geometry *all,
        struct problem_list *problems)
{
        const struct target_node *node = &stack->config->tree->nodes[number];
        const char *path = target_node_path(node);
        int r;

        if (!backing_claims_collide(&stack->nodes[number].geometry.claims, &all->claims))
                return 0;
        r = problem_add(problems, EINVAL, "/target", "BackingInUse",
                "Bytes of %s would be at two places of the disk, because two targets of the tree lie on "
                "them. Give each target a store of its own, or a part of one (offset, and a linear target "
                "with a length).",
                path ? path : "the backing store");
        return r < 0 ? r : -EINVAL;
}

static int open_nodes(struct stack *stack, struct target_geometry *ret, struct problem_list *problems)
{
        for (unsigned i = stack_count(stack); i-- > 0;) {
                _cleanup_problems_ struct problem_list found = {};
                int r = open_node(stack, i, &found), taken;

                if (r >= 0)
                        r = check_twice(stack, i, ret, &found);
                taken = take_findings(stack, i, ret);
                if (target_tree_report(stack->config->tree, i, &found, problems) < 0)
                        return -ENOMEM;
                if (r < 0 || taken < 0)
                        return r < 0 ? r : taken;
        }
        return 0;
}

/* All files of the disk are in one list, which the rings hold. */
static int collect_files(struct stack *stack, struct target_device *disk)
{
        unsigned places = 0;

        for (unsigned i = 0; i < stack_count(stack); i++) {
                const struct target_device *device = &stack->devices[i];

                stack->nodes[i].first_file = disk->file_count;
                stack->nodes[i].first_place = places;
                places += stack->config->tree->nodes[i].desc->waits.files;
                if (device->file_count > TARGET_FILES_MAX - disk->file_count)
                        return -EMFILE;
                memcpy(&disk->files[disk->file_count], device->files,
                        device->file_count * sizeof(device->files[0]));
                disk->file_count += device->file_count;
        }
        return 0;
}

static bool is_line(const struct stack *stack)
{
        uint64_t offset;

        for (unsigned i = 0; i + 1 < stack_count(stack); i++)
                if (!is_part(&stack->devices[i], &offset))
                        return false;
        return true;
}

static void stack_close(struct target_device *disk)
{
        struct stack *stack = disk->state;

        for (unsigned i = 0; stack->devices && stack->nodes && i < stack_count(stack); i++) {
                struct target_device *device = &stack->devices[i];

                if (stack->nodes[i].is_open && device->target->close)
                        device->target->close(device);
                free(device->state);
        }
        if (stack->config) {
                stack_stores_closed(stack->config);
                stack_kept_close(stack);
        }
        free(stack->nodes);
        free(stack->devices);
        *stack = (struct stack){};
}

static void close_files(const struct stack *stack)
{
        for (unsigned i = 0; stack->nodes && i < stack_count(stack); i++)
                for (unsigned file = 0; file < stack->devices[i].file_count; file++)
                        close_fd(stack->devices[i].files[file]);
}

static int open_stack(struct stack *stack, struct target_device *disk, struct target_geometry *ret,
        struct problem_list *problems)
{
        bool line = is_line(stack), ends = true;
        int r = stack_stores_check(stack, line, problems);

        if (r < 0)
                return r;
        stack_stores_give(stack, disk, line);
        r = open_nodes(stack, ret, problems);
        for (unsigned i = 0; i < stack_count(stack); i++) /* of an inner node: it has no I/O of its own */
                ends = ends && (stack->devices[i].child_count > 0 || stack->devices[i].io_ends_with_process);
        disk->io_ends_with_process = ends;
        if (r >= 0)
                r = collect_files(stack, disk);
        stack_stores_take(stack, disk, line);
        return r;
}

/* What the outermost target has composed, and what was collected of all. */
static void take_geometry(const struct stack *stack, bool line, struct target_geometry *ret)
{
        struct target_geometry geometry = stack->nodes[0].geometry;

        geometry.claims = ret->claims;
        geometry.claims_have_ends = !line;
        geometry.sharing = ret->sharing;
        geometry.stable_path = ret->stable_path;
        *ret = geometry;
}

static int stack_open(struct target_device *disk, struct target_geometry *ret, struct problem_list *problems)
{
        struct stack *stack = stack_new(disk);
        int r = stack ? open_stack(stack, disk, ret, problems) : -ENOMEM;

        if (r >= 0) {
                take_geometry(stack, is_line(stack), ret);
                return 0;
        }
        if (stack)
                close_files(stack);
        disk->file_count = 0;
        disk->linear = false;
        disk->store.kept = -1;
        stack_close(disk);
        return r;
}

/* ---- serving ---- */

static int measure_leaf(struct target_device *device, uint64_t *ret)
{
        int r;

        *ret = 0;
        r = device->target->measure ? device->target->measure(device, ret) : 0;
        if (r >= 0 && *ret > target_size(device))
                __atomic_store_n(&device->size, *ret, __ATOMIC_RELAXED);
        return r;
}

static int stack_measure(struct target_device *disk, uint64_t *ret)
{
        const struct stack *stack = disk->state;
        uint64_t sizes[TARGET_NODES_MAX];
        int r = 0;

        for (unsigned i = stack_count(stack); r >= 0 && i-- > 0;) {
                struct target_device *device = &stack->devices[i];

                if (device->child_count > 0)
                        sizes[i] = device->target->size(
                                device, &sizes[stack->config->tree->nodes[i].first_child]);
                else
                        r = measure_leaf(device, &sizes[i]);
        }
        stack_stores_measured(stack, disk);
        if (r >= 0)
                *ret = sizes[0];
        return r;
}

void stack_pointer(const struct target_device *disk, unsigned node, char ret[static TARGET_POINTER_SIZE])
{
        const struct stack *stack = disk->state;

        target_tree_pointer(stack->config->tree, node, ret);
}

void stack_settle(const struct target_device *disk)
{
        const struct stack *stack = disk->state;

        for (unsigned i = 0; i < stack_count(stack); i++) {
                struct target_device *device = &stack->devices[i];

                device->read_only = disk->read_only;
                device->logical_block_size = disk->logical_block_size;
                device->queues = disk->queues;
                device->queue_depth = disk->queue_depth;
        }
}

static int stack_start_device(struct target_device *disk, struct problem_list *problems)
{
        struct stack *stack = disk->state;
        int r = stack_kept_divide(stack, disk);

        for (unsigned i = stack_count(stack); r >= 0 && i-- > 0;) {
                _cleanup_problems_ struct problem_list found = {};
                struct target_device *device = &stack->devices[i];

                r = device->target->start_device ? device->target->start_device(device, &found) : 0;
                if (target_tree_report(stack->config->tree, i, &found, problems) < 0)
                        return -ENOMEM;
        }
        return r;
}

static void set_up_queue(const struct stack *stack, const struct target_queue *queue,
        struct stack_queue *state, unsigned number)
{
        const struct target_node *node = &stack->config->tree->nodes[number];

        state->queues[number] = (struct target_queue){
                .device = &stack->devices[number],
                .index = queue->index,
                .kept = stack_kept_of_queue(stack, number, queue->index),
                .first_file = stack->nodes[number].first_file,
                .first_place = stack->nodes[number].first_place,
                .of_disk = queue->of_disk,
                .children = &state->queues[node->first_child],
        };
}

static int start_node(struct target_queue *queue)
{
        const struct target *target = queue->device->target;

        if (target->queue_size > 0) {
                queue->state = calloc(1, target->queue_size);
                if (!queue->state)
                        return -ENOMEM;
        }
        return target->start_queue ? target->start_queue(queue) : 0;
}

static void stack_stop_queue(struct target_queue *queue)
{
        const struct stack *stack = queue->device->state;
        struct stack_queue *state = queue->state;
        unsigned count = stack_count(stack);

        for (unsigned i = count - state->started; i < count; i++) {
                const struct target *target = stack->devices[i].target;

                if (target->stop_queue)
                        target->stop_queue(&state->queues[i]);
        }
        for (unsigned i = 0; state->queues && i < count; i++)
                free(state->queues[i].state);
        free(state->queues);
        *state = (struct stack_queue){};
}

static int stack_start_queue(struct target_queue *queue)
{
        const struct stack *stack = queue->device->state;
        struct stack_queue *state = queue->state;
        unsigned count = stack_count(stack);
        int r = 0;

        state->queues = calloc(count, sizeof(*state->queues));
        if (!state->queues)
                return -ENOMEM;
        for (unsigned i = 0; i < count; i++)
                set_up_queue(stack, queue, state, i);
        for (unsigned i = count; r >= 0 && i-- > 0;) {
                r = start_node(&state->queues[i]);
                state->started += r >= 0;
        }
        if (r < 0)
                stack_stop_queue(queue);
        return r;
}

/* The request as the outermost target sees it. */
static int stack_perform(struct target_io *io)
{
        const struct stack_queue *state = io->queue->state;
        const struct target *target = state->queues[0].device->target;
        struct target_io inner = *io;

        inner.queue = &state->queues[0];
        switch (io->op) {
        case IO_READ:
                return target->read(&inner);
        case IO_WRITE:
                return target->write(&inner);
        case IO_DISCARD:
                return target->discard(&inner);
        case IO_WRITE_ZEROES:
                return target->write_zeroes(&inner);
        default:
                return -EOPNOTSUPP;
        }
}

/* Return whether all targets above others only map offsets, and none wants to see each request. */
static bool is_map(const struct stack_config *config)
{
        if (target_tree_flags(config->tree) & TARGET_SEES_ALL)
                return false;
        for (unsigned i = 0; i < config->tree->count; i++)
                if (config->tree->nodes[i].child_count > 0 && !config->targets[i]->divide)
                        return false;
        return true;
}

/* Down to the leaf, as long as the bytes are in one part. */
static bool stack_locate(const struct target_queue *queue, enum io_op op, uint64_t offset, uint32_t length,
        struct target_place *ret)
{
        const struct stack_queue *state = queue->state;
        struct target_queue *node = &state->queues[0];

        while (node->device->child_count > 0) {
                const struct target_io io = {.queue = node, .op = op, .offset = offset, .length = length};
                struct target_cursor cursor = {};
                struct target_part part;

                if (!node->device->target->divide(&io, &cursor, &part) || part.length != length)
                        return false;
                node = &node->children[part.child];
                offset = part.offset;
        }
        *ret = (struct target_place){
                .file = node->first_file + node->device->linear_file,
                .offset = node->device->linear_offset + offset,
        };
        return node->device->linear;
}

/* The core also calls it after a request with FUA, with that request. */
static int stack_flush(struct target_io *io)
{
        const struct stack_queue *state = io->queue->state;
        struct target_io inner = {.queue = &state->queues[0], .op = IO_FLUSH, .tag = io->tag};

        return inner.queue->device->target->flush(&inner);
}

/* The target of the verb sees its own queue. */
static int stack_act(struct target_action *action, unsigned verb)
{
        struct target_queue *queue = action->queue;
        const struct stack_queue *state = queue->state;
        int r;

        action->queue = &state->queues[action->node];
        r = action->queue->device->target->act(action, verb);
        action->queue = queue;
        return r;
}

/* ---- the background ---- */

/* Find the target that a coroutine of the background belongs to: what is below a target begins before it, and is asked to stop after
 * it. device: of the device, not of the queue. Return its queue, and its number among those of that target. */
static struct target_queue *find_background(
        const struct target_queue *queue, bool device, unsigned number, unsigned *ret_number)
{
        const struct stack_queue *state = queue->state;
        const struct stack *stack = queue->device->state;

        for (unsigned i = stack_count(stack); i-- > 0;) {
                const struct target_waits *waits = &stack->config->tree->nodes[i].desc->waits;
                unsigned count = device ? waits->device_background : waits->background;

                if (number < count) {
                        *ret_number = number;
                        return &state->queues[i];
                }
                number -= count;
        }
        assert(false);
        return NULL;
}

static void stack_background(struct target_queue *queue, unsigned number)
{
        struct target_queue *inner = find_background(queue, false, number, &number);

        inner->device->target->background(inner, number);
}

static void stack_device_background(struct target_queue *queue, unsigned number)
{
        struct target_queue *inner = find_background(queue, true, number, &number);

        inner->device->target->device_background(inner, number);
}

void stack_make(const struct target_tree *tree, struct stack_config *ret)
{
        ret->tree = tree;
        ret->desc = *tree->nodes[0].desc;
        ret->desc.flags = target_tree_flags(tree);
        ret->desc.needs = target_tree_needs(tree);
        target_tree_waits(tree, &ret->desc.waits);
        ret->desc.verbs = NULL; /* each is of one of the targets: target_tree_verb() */
        ret->desc.verb_count = 0;
        ret->target = (struct target){
                .desc = &ret->desc,
                .device_size = sizeof(struct stack),
                .queue_size = sizeof(struct stack_queue),
                .open = stack_open,
                .close = stack_close,
                .measure = stack_measure,
                .reaches_end = stack_reaches_end,
                .start_device = stack_start_device,
                .start_queue = stack_start_queue,
                .stop_queue = stack_stop_queue,
                .background = stack_background,
                .device_background = stack_device_background,
                .act = target_tree_has_verbs(tree) ? stack_act : NULL,
                .locate = is_map(ret) ? stack_locate : NULL,
        };
        stack_rules_callbacks(ret->targets, tree->count, stack_perform, stack_flush, &ret->target);
}
