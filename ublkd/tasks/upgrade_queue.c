/* SPDX-License-Identifier: MIT */
/* The devices whose workers are to be replaced. */
#include "ublkd/tasks/upgrade_queue.h"

#include "ublkd/base/cleanup.h"

#include <stdlib.h>
#include <string.h>

struct queued {
        struct tree_node by_name, by_turn;
        struct upgrade_facts facts;
        bool passed_over;
        bool waits; /* in the tree of those that are ready */
        char name[];
};

static struct queued *of_names(const struct tree_node *node)
{
        return TREE_OBJECT(node, struct queued, by_name);
}

static struct queued *of_turns(const struct tree_node *node)
{
        return TREE_OBJECT(node, struct queued, by_turn);
}

static int compare_name(const void *key, const struct tree_node *node)
{
        return strcmp(key, of_names(node)->name);
}

/* By name; those that have refused a restart come last. */
static int compare_turn(const void *key, const struct tree_node *node)
{
        const struct queued *device = key, *other = of_turns(node);

        if (device->facts.refused != other->facts.refused)
                return device->facts.refused ? 1 : -1;
        return strcmp(device->name, other->name);
}

void upgrade_queue_init(struct upgrade_queue *queue)
{
        *queue = (struct upgrade_queue){
                .devices.compare = compare_name,
                .ready.compare = compare_turn,
        };
}

static struct queued *find(const struct upgrade_queue *queue, const char *name)
{
        return of_names(tree_find(&queue->devices, name));
}

static struct queued *find_or_add(struct upgrade_queue *queue, const char *name)
{
        struct queued *device = find(queue, name);

        if (device)
                return device;
        device = calloc(1, sizeof(*device) + strlen(name) + 1);
        if (!device)
                return NULL;
        strcpy(device->name, name);
        tree_insert(&queue->devices, device->name, &device->by_name);
        return device;
}

/* Take the device out of all that follows from its facts. */
static void withdraw(struct upgrade_queue *queue, struct queued *device)
{
        queue->outdated -= device->facts.outdated;
        queue->restarting -= device->facts.restarting && !device->passed_over;
        if (device->waits)
                (void)tree_remove(&queue->ready, device);
        device->waits = false;
}

static void enter(struct upgrade_queue *queue, struct queued *device)
{
        queue->outdated += device->facts.outdated;
        queue->restarting += device->facts.restarting && !device->passed_over;
        device->waits = device->facts.outdated && device->facts.ready && !device->passed_over;
        if (device->waits)
                tree_insert(&queue->ready, device, &device->by_turn);
}

static void drop(struct upgrade_queue *queue, struct queued *device)
{
        withdraw(queue, device);
        (void)tree_remove(&queue->devices, device->name);
        free(device);
}

void upgrade_queue_clear(struct upgrade_queue *queue)
{
        while (queue->devices.first)
                drop(queue, of_names(queue->devices.first));
}

void upgrade_queue_remove(struct upgrade_queue *queue, const char *name)
{
        struct queued *device = find(queue, name);

        if (device)
                drop(queue, device);
}

int upgrade_queue_set(struct upgrade_queue *queue, const char *name, const struct upgrade_facts *facts)
{
        bool is_of_interest = facts->outdated || facts->restarting;
        struct queued *device = is_of_interest ? find_or_add(queue, name) : find(queue, name);

        if (!device)
                return is_of_interest ? -ENOMEM : 0;
        if (!is_of_interest && !device->passed_over) {
                drop(queue, device);
                return 0;
        }
        withdraw(queue, device);
        device->facts = *facts;
        enter(queue, device);
        return 0;
}

int upgrade_queue_pass_over(struct upgrade_queue *queue, const char *name)
{
        struct queued *device = find_or_add(queue, name);

        if (!device)
                return -ENOMEM;
        withdraw(queue, device);
        device->passed_over = true;
        enter(queue, device);
        return 0;
}

const char *upgrade_queue_next(const struct upgrade_queue *queue)
{
        const struct queued *device = of_turns(queue->ready.first);

        return device ? device->name : NULL;
}
