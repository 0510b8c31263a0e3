/* SPDX-License-Identifier: MIT */
/* The tree of targets that a spec describes: a target may stand on others, its "child" or its "children". Both programs
 * parse it (targets/known/target_tree_parse.h), and both take what the whole of it can do from here. Pure; bounded by
 * TARGET_NODES_MAX and TARGET_LEVELS_MAX. */
#pragma once

#include "targets/target_desc.h"

enum {
        TARGET_NODES_MAX = 64,
        TARGET_LEVELS_MAX = 8,
        TARGET_STORES_MAX = 16, /* backing stores of a tree */
};

/* Bytes of a pointer, with the NUL: "/target", and on each further level "/children/NN" at most. */
enum { TARGET_POINTER_SIZE = 8 + (TARGET_LEVELS_MAX - 1) * 12 };

struct target_node {
        const struct target_desc *desc; /* NULL only where there are problems */
        void *options;                  /* a struct of desc->options->struct_size bytes; NULL like desc */
        unsigned parent;                /* number of a node; of the root: 0 */
        unsigned level;                 /* of the root: 1 */
        int index;                      /* in "children" of the parent; -1: it is the "child", or the root */
        unsigned first_child, child_count; /* their numbers follow one another */
};

/* A parent has a lower number than its children; the root is number 0. */
struct target_tree {
        struct target_node *nodes;
        unsigned count;
};

/* Free a tree. NULL is fine. Return NULL. */
struct target_tree *target_tree_free(struct target_tree *tree);
DEFINE_CLEANUP(struct target_tree, target_tree_free);
#define _cleanup_target_tree_ _cleanup_(target_tree_free_pointer)

/* Check what a schema cannot say, of a tree that was parsed without problems. size: bytes, of the spec; 0: not given. Refuse
 * a tree that has more stores than a disk may have, or whose targets wait for more than a queue can reserve, or keep more
 * memory than a disk can have. Return 0, also if problems were added; -ENOMEM. */
int target_tree_check(const struct target_tree *tree, uint64_t size, struct problem_list *problems);

/* Write the RFC 6901 pointer of a node ("/target/children/1"). */
void target_tree_pointer(
        const struct target_tree *tree, unsigned number, char ret[static TARGET_POINTER_SIZE]);

/* Add the problems of a target, whose pointers begin with "/target" as those of each target do, to those of the spec, with the
 * pointer of the node. Return 0 or -ENOMEM. */
int target_tree_report(const struct target_tree *tree, unsigned number, const struct problem_list *of_target,
        struct problem_list *problems);

/* Return what the whole tree promises (enum target_flag): what all of its targets promise, and each restriction of one of
 * them. A tree of several is TARGET_IS_PART of nothing. */
unsigned target_tree_flags(const struct target_tree *tree);
/* Return what its targets keep in all (enum target_need). */
unsigned target_tree_needs(const struct target_tree *tree);
/* Write what each queue of the tree reserves (target_desc.waits): a coroutine of await_all() for each target that a request can
 * reach beside the first; of what the targets declare, all coroutines and places, and the most threads, which they share.
 * Coroutines of await_all() are no more than TARGET_CHILDREN_MAX, since it does with fewer. */
void target_tree_waits(const struct target_tree *tree, struct target_waits *ret);
/* Return whether the tree has a size of its own, from an option or a backing store. */
bool target_tree_has_size(const struct target_tree *tree);

/* What a client can start on the disk by its name: a verb of the outermost target, or of another one where that is `anywhere`. */
struct target_tree_verb {
        unsigned node, number; /* of the target; of its desc->verbs */
        const struct target_verb *verb;
        unsigned
                lacking; /* the target that has not what the verb needs; without meaning unless -EOPNOTSUPP */
        const char *
                refusal; /* why this disk does not have it, the end of a sentence; NULL: a target is `lacking` */
};

/* Find a verb by its name. Return 0; -ENOENT: no target of the tree has one that can be started; -EOPNOTSUPP: one has, but this
 * disk cannot do it: *ret is filled all the same. */
int target_tree_verb(const struct target_tree *tree, const char *name, struct target_tree_verb *ret);
/* Return whether there is any verb that the disk can do. */
bool target_tree_has_verbs(const struct target_tree *tree);

/* Return the number of the target that follows options while it serves (target_desc.pack_live); -1: there is none. */
int target_tree_live_node(const struct target_tree *tree);
/* Return the number of a target that is for tests only; -1: there is none. */
int target_tree_for_tests(const struct target_tree *tree);
/* Return the same, but -1 also if `before` (or NULL) is the same tree but for what a disk can follow: with rules that change, a
 * disk that is there can be freed. */
int target_tree_new_for_tests(const struct target_tree *tree, const struct target_tree *before);

/* Return the number of the first target with a path of a backing store; -1: there is none. */
int target_tree_store(const struct target_tree *tree);
/* Write the numbers of the targets with a path of a backing store, in the order of the tree. Return how many there are. */
unsigned target_tree_stores(const struct target_tree *tree, unsigned ret[static TARGET_STORES_MAX]);
/* Return whether the messages have a list of the backing stores: there are several, or the disk does not lie in the only
 * one as it is. */
bool target_tree_has_list(const struct target_tree *tree);
/* Return whether the target of a node takes a path of a backing store. */
bool target_node_has_store(const struct target_node *node);
/* Return where in its store the part of the target `number` begins, in bytes: the offset of its options and of the targets of
 * which it is, in turn, the only child. */
uint64_t target_tree_store_begin(const struct target_tree *tree, unsigned number);
/* Return the path that the options of a node give; NULL: none. */
const char *target_node_path(const struct target_node *node);

/* Return the object of that target in the object of a spec's "target": what is at the end of all "child". */
const cJSON *target_store_object(const cJSON *object);

/* Return whether both have the same targets with the same options. live: also those that a disk can follow
 * (target_desc.live_options). */
bool target_tree_equal(const struct target_tree *one, const struct target_tree *other, bool live);
