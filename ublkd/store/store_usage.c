/* SPDX-License-Identifier: MIT */
/* What the devices of users have. */
#include "ublkd/store/store_usage.h"

static struct store_share *of_node(const struct tree_node *node)
{
        return TREE_OBJECT(node, struct store_share, node);
}

/* Several devices have one user: the place in memory makes the key unique. */
static int compare(const void *key, const struct tree_node *node)
{
        const struct store_share *share = key, *other = of_node(node);

        if (share->user != other->user)
                return share->user < other->user ? -1 : 1;
        return share == other ? 0 : share < other ? -1 : 1;
}

static void add(struct store_usage *usage, const struct store_usage *more)
{
        usage->devices += more->devices;
        usage->unreadable += more->unreadable;
        usage->bytes += more->bytes;
}

static void update(struct tree_node *node)
{
        struct store_share *share = of_node(node);

        share->below = share->own;
        if (node->left)
                add(&share->below, &of_node(node->left)->below);
        if (node->right)
                add(&share->below, &of_node(node->right)->below);
}

void store_usage_init(struct tree *users)
{
        *users = (struct tree){.compare = compare, .update = update};
}

void store_usage_take(struct tree *users, struct store_share *share)
{
        if (share->counted)
                (void)tree_remove(users, share);
        share->counted = false;
}

static bool is_same(const struct store_share *one, const struct store_share *other)
{
        return one->counted == other->counted
               && (!one->counted
                       || (one->user == other->user && one->own.unreadable == other->own.unreadable
                               && one->own.bytes == other->own.bytes));
}

/* What a target keeps lies in memory of the host. */
static uint64_t bytes_of(const struct device_spec *spec)
{
        return spec->options.size + device_spec_kept_bytes(spec);
}

void store_usage_count(struct tree *users, struct store_share *share, const struct device_record *record)
{
        struct store_share now = {
                .own = {.devices = 1,
                        .unreadable = record->spec ? 0 : 1,
                        .bytes = record->spec ? bytes_of(record->spec) : 0},
        };

        now.counted = tenant_user(record->tenant, &now.user);
        if (is_same(share, &now))
                return;
        store_usage_take(users, share);
        *share = now;
        if (share->counted)
                tree_insert(users, share, &share->node);
}

/* Return the sum of all users below `user`. */
static struct store_usage sum_below(const struct tree *users, uint64_t user)
{
        struct store_usage sum = {};
        const struct tree_node *node = users->root;

        while (node) {
                const struct store_share *share = of_node(node);

                if (share->user >= user) {
                        node = node->left;
                        continue;
                }
                add(&sum, &share->own);
                if (node->left)
                        add(&sum, &of_node(node->left)->below);
                node = node->right;
        }
        return sum;
}

static struct store_usage subtract(const struct store_usage *from, const struct store_usage *part)
{
        return (struct store_usage){
                .devices = from->devices - part->devices,
                .unreadable = from->unreadable - part->unreadable,
                .bytes = from->bytes - part->bytes,
        };
}

struct store_usage store_usage_of(const struct tree *users, uid_t first, uid_t last)
{
        struct store_usage upto = sum_below(users, (uint64_t)last + 1), before = sum_below(users, first);

        return subtract(&upto, &before);
}

struct store_usage store_usage_without(struct store_usage usage, const struct store_share *share)
{
        return subtract(&usage, &share->own);
}
