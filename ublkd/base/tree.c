/* SPDX-License-Identifier: MIT */
/* A sorted index: an AVL tree whose nodes are also linked in their order.
 *
 * A function that changes a subtree returns its new root. The recursion is as deep as the tree is high, which
 * is less than 1.45 log2(count). */
#include "ublkd/base/tree.h"

#include <assert.h>
#include <stdbool.h>

/* ---- balance ---- */

static int height(const struct tree_node *node)
{
        return node ? node->height : 0;
}

static void update(const struct tree *tree, struct tree_node *node)
{
        int left = height(node->left), right = height(node->right);

        node->height = 1 + (left > right ? left : right);
        if (tree->update)
                tree->update(node);
}

static struct tree_node *rotate_left(const struct tree *tree, struct tree_node *node)
{
        struct tree_node *root = node->right;

        node->right = root->left;
        root->left = node;
        update(tree, node);
        update(tree, root);
        return root;
}

static struct tree_node *rotate_right(const struct tree *tree, struct tree_node *node)
{
        struct tree_node *root = node->left;

        node->left = root->right;
        root->right = node;
        update(tree, node);
        update(tree, root);
        return root;
}

/* The heights of the two children differ by 2 at most. */
static struct tree_node *balance(const struct tree *tree, struct tree_node *node)
{
        int lean = height(node->right) - height(node->left);

        if (lean > 1) {
                if (height(node->right->left) > height(node->right->right))
                        node->right = rotate_right(tree, node->right);
                return rotate_left(tree, node);
        }
        if (lean < -1) {
                if (height(node->left->right) > height(node->left->left))
                        node->left = rotate_left(tree, node->left);
                return rotate_right(tree, node);
        }
        update(tree, node);
        return node;
}

/* ---- order ---- */

static struct tree_node *find_neighbour(const struct tree *tree, const void *key, bool skip_equal)
{
        struct tree_node *node = tree->root, *found = NULL;

        while (node) {
                int order = tree->compare(key, node);

                if (order < 0 || (order == 0 && !skip_equal)) {
                        found = node;
                        node = node->left;
                } else
                        node = node->right;
        }
        return found;
}

static void link_before(
        struct tree *tree, struct tree_node *node, struct tree_node *previous, struct tree_node *next)
{
        node->previous = previous;
        node->next = next;
        if (next)
                next->previous = node;
        if (previous)
                previous->next = node;
        else
                tree->first = node;
}

static void unlink_node(struct tree *tree, const struct tree_node *node)
{
        if (node->next)
                node->next->previous = node->previous;
        if (node->previous)
                node->previous->next = node->next;
        else
                tree->first = node->next;
}

/* ---- changes ---- */

/* `previous` and `next`: the neighbours of the key as far as the way down to `at` shows them. */
static struct tree_node *insert_below(struct tree *tree, struct tree_node *at, const void *key,
        struct tree_node *node, struct tree_node *previous, struct tree_node *next)
{
        int order;

        if (!at) {
                *node = (struct tree_node){};
                link_before(tree, node, previous, next);
                update(tree, node);
                return node;
        }
        order = tree->compare(key, at);
        assert(order != 0);
        if (order < 0)
                at->left = insert_below(tree, at->left, key, node, previous, at);
        else
                at->right = insert_below(tree, at->right, key, node, at, next);
        return balance(tree, at);
}

static struct tree_node *take_first(
        const struct tree *tree, struct tree_node *at, struct tree_node **ret_first)
{
        if (!at->left) {
                *ret_first = at;
                return at->right;
        }
        at->left = take_first(tree, at->left, ret_first);
        return balance(tree, at);
}

static struct tree_node *join(const struct tree *tree, struct tree_node *left, struct tree_node *right)
{
        struct tree_node *root;

        if (!right)
                return left;
        right = take_first(tree, right, &root);
        root->left = left;
        root->right = right;
        return balance(tree, root);
}

static struct tree_node *remove_below(
        const struct tree *tree, struct tree_node *at, const void *key, struct tree_node **ret_removed)
{
        int order;

        if (!at)
                return NULL;
        order = tree->compare(key, at);
        if (order == 0) {
                *ret_removed = at;
                return join(tree, at->left, at->right);
        }
        if (order < 0)
                at->left = remove_below(tree, at->left, key, ret_removed);
        else
                at->right = remove_below(tree, at->right, key, ret_removed);
        return balance(tree, at);
}

void tree_insert(struct tree *tree, const void *key, struct tree_node *node)
{
        tree->root = insert_below(tree, tree->root, key, node, NULL, NULL);
        tree->count++;
}

struct tree_node *tree_remove(struct tree *tree, const void *key)
{
        struct tree_node *removed = NULL;

        tree->root = remove_below(tree, tree->root, key, &removed);
        if (!removed)
                return NULL;
        unlink_node(tree, removed);
        *removed = (struct tree_node){};
        tree->count--;
        return removed;
}

struct tree_node *tree_find(const struct tree *tree, const void *key)
{
        struct tree_node *node = tree->root;

        while (node) {
                int order = tree->compare(key, node);

                if (order == 0)
                        break;
                node = order < 0 ? node->left : node->right;
        }
        return node;
}

struct tree_node *tree_from(const struct tree *tree, const void *key)
{
        return find_neighbour(tree, key, false);
}

struct tree_node *tree_after(const struct tree *tree, const void *key)
{
        return find_neighbour(tree, key, true);
}
