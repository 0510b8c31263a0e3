/* SPDX-License-Identifier: MIT */
/* Which devices users have, and how much. */
#include "ublkd/store/store_usage.h"

#include <string.h>

struct user_key {
        uid_t user;
        const char *name; /* of a device */
};

static struct store_share *of_node(const struct tree_node *node)
{
        return TREE_OBJECT(node, struct store_share, node);
}

static int compare(const void *key, const struct tree_node *node)
{
        const struct store_share *other = of_node(node);
        const struct user_key *user = key;

        if (user->user != other->user)
                return user->user < other->user ? -1 : 1;
        return strcmp(user->name, other->record->name);
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
                (void)tree_remove(users, &(const struct user_key){share->user, share->record->name});
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
                .record = record,
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
                tree_insert(users, &(const struct user_key){share->user, record->name}, &share->node);
}

static const struct store_share *of_same_user(const struct tree_node *node, uid_t user)
{
        const struct store_share *share = of_node(node);

        return share && share->user == user ? share : NULL;
}

const struct store_share *store_usage_next(const struct tree *users, uid_t user, const char *name)
{
        const struct user_key key = {.user = user, .name = name ? name : ""};

        return of_same_user(tree_after(users, &key), user);
}

const struct store_share *store_usage_after(const struct store_share *share)
{
        return of_same_user(share->node.next, share->user);
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
