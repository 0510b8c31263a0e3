/* SPDX-License-Identifier: MIT */
/* tree: against a plain table of what is in it, and how many comparisons an operation takes. */
#include "ublkd/base/tree.h"

#include "tests/unit/check.h"

#include <stdlib.h>

enum { SEED = 20260101, ITEMS = 500, ROUNDS = 20000, MANY = 10000, FEW = 100 };

struct item {
        int key;
        int sum; /* of the keys of its subtree, to see update() work */
        bool there;
        struct tree_node node;
};

static size_t comparisons;

static struct item *item_of(const struct tree_node *node)
{
        return TREE_OBJECT(node, struct item, node);
}

static int compare(const void *key, const struct tree_node *node)
{
        int one = *(const int *)key, other = item_of(node)->key;

        comparisons++;
        return (one > other) - (one < other);
}

static void update(struct tree_node *node)
{
        const struct item *left = item_of(node->left), *right = item_of(node->right);
        struct item *item = item_of(node);

        item->sum = item->key + (left ? left->sum : 0) + (right ? right->sum : 0);
}

static const struct tree empty = {.compare = compare, .update = update};

/* Check the subtree; return its height. */
static int check_subtree(const struct tree_node *node, size_t *count)
{
        int left, right, height, sum;

        if (!node)
                return 0;
        left = check_subtree(node->left, count);
        right = check_subtree(node->right, count);
        height = 1 + (left > right ? left : right);
        sum = item_of(node)->key + (node->left ? item_of(node->left)->sum : 0)
              + (node->right ? item_of(node->right)->sum : 0);
        (*count)++;
        CHECK(abs(left - right) <= 1);
        CHECK_INT(node->height, height);
        CHECK_INT(item_of(node)->sum, sum);
        return height;
}

static void check_tree(const struct tree *tree, const struct item items[static ITEMS])
{
        const struct tree_node *node = tree->first, *previous = NULL;
        size_t count = 0;

        (void)check_subtree(tree->root, &count);
        CHECK_INT(count, tree->count);
        for (size_t i = 0; i < ITEMS; i++) {
                if (!items[i].there)
                        continue;
                if (!CHECK(node == &items[i].node))
                        return;
                CHECK(node->previous == previous);
                previous = node;
                node = node->next;
        }
        CHECK(!node);
}

static const struct item *next_there(const struct item items[static ITEMS], int from)
{
        for (; from < ITEMS; from++)
                if (items[from].there)
                        return &items[from];
        return NULL;
}

static void check_lookups(const struct tree *tree, const struct item items[static ITEMS], int key)
{
        CHECK(item_of(tree_find(tree, &key)) == (items[key].there ? &items[key] : NULL));
        CHECK(item_of(tree_from(tree, &key)) == next_there(items, key));
        CHECK(item_of(tree_after(tree, &key)) == next_there(items, key + 1));
}

static void test_random_changes(void)
{
        struct item items[ITEMS] = {};
        struct tree tree = empty;

        srand(SEED);
        for (int i = 0; i < ITEMS; i++)
                items[i].key = i;
        for (unsigned round = 0; round < ROUNDS; round++) {
                /* it grows and shrinks in turn */
                bool insert = rand() % 10 < (round / 2000 % 2 ? 3 : 7);
                struct item *item = &items[rand() % ITEMS];

                if (insert && !item->there)
                        tree_insert(&tree, &item->key, &item->node);
                if (!insert)
                        CHECK(item_of(tree_remove(&tree, &item->key)) == (item->there ? item : NULL));
                item->there = insert;
                check_lookups(&tree, items, rand() % ITEMS);
                if (round % 16 == 0)
                        check_tree(&tree, items);
        }
        for (int i = 0; i < ITEMS; i++, items[i - 1].there = false)
                (void)tree_remove(&tree, &i);
        check_tree(&tree, items);
        CHECK(!tree.root && !tree.first && tree.count == 0);
}

/* The most comparisons that one operation takes in a tree of `count`, filled in ascending order. */
static size_t most_comparisons(int count)
{
        struct item *items = calloc((size_t)count, sizeof(*items));
        struct tree tree = empty;
        size_t most = 0;

        if (!items)
                abort();
        for (int i = 0; i < count; i++) {
                items[i].key = i;
                tree_insert(&tree, &i, &items[i].node);
        }
        for (int i = 0; i < count; i++) {
                comparisons = 0;
                CHECK(tree_remove(&tree, &i) == &items[i].node);
                tree_insert(&tree, &i, &items[i].node);
                CHECK(tree_find(&tree, &i) == &items[i].node);
                CHECK(tree_after(&tree, &i) == (i + 1 < count ? &items[i + 1].node : NULL));
                if (comparisons > most)
                        most = comparisons;
        }
        free(items);
        return most;
}

static void test_comparisons_grow_with_the_logarithm(void)
{
        size_t few = most_comparisons(FEW), many = most_comparisons(MANY);

        CHECK(most_comparisons(MANY) <= 4 * 1.45 * 14);
        if (!CHECK(many <= 2 * few + 8))
                fprintf(stderr, "%zu comparisons at %d, %zu at %d\n", few, FEW, many, MANY);
}

int main(void)
{
        test_random_changes();
        test_comparisons_grow_with_the_logarithm();
        return check_report();
}
