/* SPDX-License-Identifier: MIT */
/* A sorted index: an AVL tree of nodes that are members of what the caller owns.
 *
 * A node is part of its object, so insertion and removal allocate nothing and cannot fail: a record can be
 * indexed after it was written to disk. tsearch(3) allocates in between, and does not say what comes next. */
#pragma once

#include <stddef.h>

/* Zero-initialise. Owned by the tree from tree_insert() to tree_remove(). */
struct tree_node {
        struct tree_node *left, *right; /* the subtrees of smaller and of larger keys */
        struct tree_node *next, *previous;
        int height; /* of the subtree */
};

struct tree {
        /* Return less than, equal to, or more than 0: `key` sorts before, at or after `node`. */
        int (*compare)(const void *key, const struct tree_node *node);
        /* The subtree of `node` has changed: update what `node` keeps of it from its two children. NULL:
         * nothing is kept. */
        void (*update)(struct tree_node *node);
        struct tree_node *root, *first;
        size_t count;
};

/* The object that `node` is the member `member` of; NULL for NULL. */
#define TREE_OBJECT(node, type, member)                                                                      \
        ({                                                                                                   \
                __typeof__(((type *)NULL)->member) const *node_ = (node);                                    \
                node_ ? (type *)((char *)(void *)(size_t)node_ - offsetof(type, member)) : NULL;             \
        })

/* Insert `node`, whose key is `key`. The tree has no node with that key. */
void tree_insert(struct tree *tree, const void *key, struct tree_node *node);
/* Remove the node with this key. Return it, or NULL: there is none. */
struct tree_node *tree_remove(struct tree *tree, const void *key);
/* Return the node with this key, or NULL. */
struct tree_node *tree_find(const struct tree *tree, const void *key);
/* Return the first node at or after `key`, or NULL. */
struct tree_node *tree_from(const struct tree *tree, const void *key);
/* Return the first node after `key`, or NULL. */
struct tree_node *tree_after(const struct tree *tree, const void *key);
