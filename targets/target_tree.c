/* SPDX-License-Identifier: MIT */
/* The tree of targets that a spec describes: what its targets can do together, and what they refuse together. */
#include "targets/target_tree.h"

#include "targets/target_tree_kept.h"
#include "ublkd/base/cleanup.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void target_tree_pointer(
        const struct target_tree *tree, unsigned number, char ret[static TARGET_POINTER_SIZE])
{
        unsigned way[TARGET_LEVELS_MAX], steps = 0;
        size_t used = strlen("/target");

        for (; number > 0 && steps < TARGET_LEVELS_MAX; number = tree->nodes[number].parent)
                way[steps++] = number;
        memcpy(ret, "/target", used + 1);
        while (steps > 0) {
                int index = tree->nodes[way[--steps]].index;
                int r = index < 0 ? snprintf(ret + used, TARGET_POINTER_SIZE - used, "/child")
                                  : snprintf(ret + used, TARGET_POINTER_SIZE - used, "/children/%d", index);

                assert(r > 0 && used + (size_t)r < TARGET_POINTER_SIZE);
                used += (size_t)r;
        }
}

struct target_tree *target_tree_free(struct target_tree *tree)
{
        if (!tree)
                return NULL;
        for (unsigned i = 0; tree->nodes && i < tree->count; i++) {
                struct target_node *node = &tree->nodes[i];

                if (node->options)
                        dispatch_release(node->options, node->desc->options);
                free(node->options);
        }
        free(tree->nodes);
        free(tree);
        return NULL;
}

int target_tree_report(const struct target_tree *tree, unsigned number, const struct problem_list *of_target,
        struct problem_list *problems)
{
        char pointer[TARGET_POINTER_SIZE];

        target_tree_pointer(tree, number, pointer);
        for (size_t i = 0; i < of_target->count; i++) {
                const struct problem *problem = &of_target->items[i];
                const char *rest = pointer_rest(problem->pointer, "/target");
                _cleanup_free_ char *moved = NULL;

                if (asprintf(&moved, "%s%s", rest ? pointer : "", rest ? rest : problem->pointer) < 0) {
                        moved = NULL; /* asprintf(3) leaves it undefined */
                        return -ENOMEM;
                }
                if (problem_add(problems, problem->error, moved, problem->reason, "%s", problem->detail) < 0)
                        return -ENOMEM;
        }
        problems->dropped += of_target->dropped;
        return 0;
}

/* The string that the options of a node hold for `name`; NULL: there is none. */
static const char *text_option(const struct target_node *node, const char *name)
{
        const struct option_field *option = node->desc ? option_find(node->desc->options, name) : NULL;
        const char *text;

        if (!option || option->kind != OPTION_STRING)
                return NULL;
        memcpy(&text, (const char *)node->options + option->offset, sizeof(text));
        return text;
}

const char *target_node_path(const struct target_node *node)
{
        return text_option(node, "path");
}

/* Return the number of bytes that the options of a node hold for `name`; 0: there is none. */
static uint64_t bytes_option(const struct target_node *node, const char *name)
{
        const struct option_field *option = node->desc ? option_find(node->desc->options, name) : NULL;
        uint64_t bytes;

        if (!option || option->kind != OPTION_BYTES)
                return 0;
        memcpy(&bytes, (const char *)node->options + option->offset, sizeof(bytes));
        return bytes;
}

uint64_t target_tree_store_begin(const struct target_tree *tree, unsigned number)
{
        uint64_t begin = bytes_option(&tree->nodes[number], "offset");

        for (; number > 0 && tree->nodes[number].index < 0; number = tree->nodes[number].parent)
                begin += bytes_option(&tree->nodes[tree->nodes[number].parent], "offset");
        return begin;
}

bool target_node_has_store(const struct target_node *node)
{
        return node->desc && option_find(node->desc->options, "path");
}

/* Return whether every target above only leaves out what is before its part of its only "child". */
static bool is_in_line(const struct target_tree *tree, unsigned number)
{
        for (; number > 0; number = tree->nodes[number].parent) {
                const struct target_desc *above = tree->nodes[tree->nodes[number].parent].desc;

                if (tree->nodes[number].index >= 0 || !above || !(above->flags & TARGET_IS_PART))
                        return false;
        }
        return true;
}

/* The image of a pool is made for one disk, which lies in it as it is. */
static int check_store(const struct target_tree *tree, unsigned number, struct problem_list *problems)
{
        char pointer[TARGET_POINTER_SIZE], pool[TARGET_POINTER_SIZE + 8];

        if (number == 0 || !text_option(&tree->nodes[number], "pool"))
                return 0;
        target_tree_pointer(tree, number, pointer);
        snprintf(pool, sizeof(pool), "%s/pool", pointer);
        return problem_add(problems, EINVAL, pool, "PoolBelowTarget",
                "pool is given below another target, but the image of a pool is a disk of its own; give path "
                "instead");
}

static int check_node(
        const struct target_tree *tree, unsigned number, uint64_t size, struct problem_list *problems)
{
        _cleanup_problems_ struct problem_list found = {};
        const struct target_node *node = &tree->nodes[number];
        size_t before = problems->count + problems->dropped;
        int r = target_node_has_store(node) ? check_store(tree, number, problems) : 0;

        if (r < 0 || problems->count + problems->dropped != before)
                return r;
        r = node->desc->check ? node->desc->check(node->options, number == 0 ? size : 0, &found) : 0;
        if (r >= 0 && node->desc->check_below)
                r = node->desc->check_below(tree, node, &found);
        return r < 0 ? r : target_tree_report(tree, number, &found, problems);
}

/* Each target alone is within these limits, and a client chooses how many there are. */
static int check_waits(const struct target_tree *tree, struct problem_list *problems)
{
        struct target_waits waits;

        target_tree_waits(tree, &waits);
        if (waits.background <= TARGET_BACKGROUND_MAX && waits.device_background <= TARGET_BACKGROUND_MAX
                && waits.files <= TARGET_QUEUE_FILES_MAX)
                return 0;
        return problem_add(problems, EINVAL, "/target", "TargetsReserveTooMuch",
                "the targets of the disk reserve more coroutines (%u, and %u for the disk, of %u) or "
                "descriptors (%u of %u) together than a queue has; give fewer of them",
                waits.background, waits.device_background, (unsigned)TARGET_BACKGROUND_MAX, waits.files,
                (unsigned)TARGET_QUEUE_FILES_MAX);
}

/* Likewise. */
static int check_kept(const struct target_tree *tree, struct problem_list *problems)
{
        char pointer[TARGET_POINTER_SIZE];
        int beyond = target_tree_kept_beyond(tree);

        if (beyond < 0)
                return 0;
        target_tree_pointer(tree, (unsigned)beyond, pointer);
        return problem_add(problems, EINVAL, pointer, "TargetsKeepTooMuch",
                "with this target the tree keeps more memory than the %d MiB for a disk and %d MiB for a "
                "queue "
                "that there are; leave it out, or give fewer targets that keep some",
                TARGET_KEPT_DISK_MAX >> 20, TARGET_KEPT_QUEUE_MAX >> 20);
}

int target_tree_check(const struct target_tree *tree, uint64_t size, struct problem_list *problems)
{
        unsigned stores = 0;
        int r = 0;

        for (unsigned i = 0; r >= 0 && i < tree->count; i++) {
                r = check_node(tree, i, size, problems);
                stores += target_node_has_store(&tree->nodes[i]);
        }
        if (r >= 0 && stores > TARGET_STORES_MAX)
                r = problem_add(problems, EINVAL, "/target", "TooManyStores",
                        "the tree has %u targets with a backing store; give %d at most", stores,
                        TARGET_STORES_MAX);
        if (r >= 0)
                r = check_waits(tree, problems);
        return r < 0 ? r : check_kept(tree, problems);
}

unsigned target_tree_flags(const struct target_tree *tree)
{
        static const unsigned of_one =
                TARGET_ONE_QUEUE | TARGET_STORE_OF_USER | TARGET_SEES_ALL | TARGET_FOR_TESTS;
        unsigned all = tree->count > 1 ? ~(of_one | TARGET_IS_PART) : ~of_one, any = 0;

        for (unsigned i = 0; i < tree->count; i++) {
                all &= tree->nodes[i].desc->flags;
                any |= tree->nodes[i].desc->flags & of_one;
        }
        return all | any;
}

unsigned target_tree_needs(const struct target_tree *tree)
{
        unsigned needs = 0;

        for (unsigned i = 0; i < tree->count; i++)
                needs |= tree->nodes[i].desc->needs;
        return needs;
}

static unsigned at_most(unsigned number, unsigned most)
{
        return number < most ? number : most;
}

void target_tree_waits(const struct target_tree *tree, struct target_waits *ret)
{
        struct target_waits waits = {};
        unsigned leaves = 0;

        for (unsigned i = 0; i < tree->count; i++) {
                const struct target_waits *of_node = &tree->nodes[i].desc->waits;

                leaves += tree->nodes[i].child_count == 0;
                waits.children += of_node->children;
                waits.watched |= of_node->watched;
                waits.background += of_node->background;
                waits.device_background += of_node->device_background;
                waits.files += of_node->files;
                if (waits.work_threads < of_node->work_threads)
                        waits.work_threads = of_node->work_threads;
        }
        waits.children = at_most(waits.children + leaves - 1, TARGET_CHILDREN_MAX);
        if (target_tree_flags(tree) & TARGET_NEVER_WAITS) /* its requests have no coroutine at all */
                waits.children = 0;
        *ret = waits;
}

bool target_tree_has_size(const struct target_tree *tree)
{
        bool has[TARGET_NODES_MAX];

        for (unsigned i = tree->count; i-- > 0;) { /* children first */
                const struct target_node *node = &tree->nodes[i];

                has[i] = node->desc->has_size ? node->desc->has_size(node->options, &has[node->first_child],
                                                        node->child_count)
                                              : !node->desc->size_required;
        }
        return has[0];
}

/* Find what keeps a disk from having a verb that one of its targets has. Return 0 or -EOPNOTSUPP. */
static int check_verb(const struct target_tree *tree, struct target_tree_verb *verb)
{
        for (unsigned i = 0; i < tree->count; i++)
                if ((tree->nodes[i].desc->flags & verb->verb->needs) != verb->verb->needs) {
                        verb->lacking = i;
                        return -EOPNOTSUPP;
                }
        if (verb->verb->refuse)
                verb->refusal = verb->verb->refuse(tree->nodes[verb->node].options);
        return verb->refusal ? -EOPNOTSUPP : 0;
}

int target_tree_verb(const struct target_tree *tree, const char *name, struct target_tree_verb *ret)
{
        for (unsigned i = 0; i < tree->count; i++) {
                const struct target_desc *desc = tree->nodes[i].desc;
                int number = target_desc_verb(desc, name);

                if (number < 0 || (i > 0 && !desc->verbs[number].anywhere))
                        continue;
                *ret = (struct target_tree_verb){
                        .node = i, .number = (unsigned)number, .verb = &desc->verbs[number]};
                return check_verb(tree, ret);
        }
        return -ENOENT;
}

bool target_tree_has_verbs(const struct target_tree *tree)
{
        for (unsigned i = 0; i < tree->count; i++)
                for (unsigned verb = 0; verb < tree->nodes[i].desc->verb_count; verb++) {
                        struct target_tree_verb found;

                        if (target_tree_verb(tree, tree->nodes[i].desc->verbs[verb].name, &found) >= 0)
                                return true;
                }
        return false;
}

int target_tree_live_node(const struct target_tree *tree)
{
        for (unsigned i = 0; i < tree->count; i++)
                if (tree->nodes[i].desc->pack_live)
                        return (int)i;
        return -1;
}

int target_tree_for_tests(const struct target_tree *tree)
{
        for (unsigned i = 0; i < tree->count; i++)
                if (tree->nodes[i].desc->flags & TARGET_FOR_TESTS)
                        return (int)i;
        return -1;
}

int target_tree_new_for_tests(const struct target_tree *tree, const struct target_tree *before)
{
        return before && target_tree_equal(tree, before, false) ? -1 : target_tree_for_tests(tree);
}

int target_tree_store(const struct target_tree *tree)
{
        for (unsigned i = 0; i < tree->count; i++)
                if (target_node_has_store(&tree->nodes[i]))
                        return (int)i;
        return -1;
}

unsigned target_tree_stores(const struct target_tree *tree, unsigned ret[static TARGET_STORES_MAX])
{
        unsigned count = 0;

        for (unsigned i = 0; i < tree->count && count < TARGET_STORES_MAX; i++)
                if (target_node_has_store(&tree->nodes[i]))
                        ret[count++] = i;
        return count;
}

bool target_tree_has_list(const struct target_tree *tree)
{
        unsigned numbers[TARGET_STORES_MAX], count = target_tree_stores(tree, numbers);

        return count > 1 || (count == 1 && !is_in_line(tree, numbers[0]));
}

const cJSON *target_store_object(const cJSON *object)
{
        for (int level = 1; level < TARGET_LEVELS_MAX; level++) {
                const cJSON *child = cJSON_GetObjectItemCaseSensitive(object, "child");

                if (!cJSON_IsObject(child))
                        break;
                object = child;
        }
        return object;
}

static bool is_live_option(const struct target_desc *desc, const char *name)
{
        for (const char *const *live = desc->live_options; live && *live; live++)
                if (strcmp(*live, name) == 0)
                        return true;
        return false;
}

static bool options_equal(const struct target_node *one, const struct target_node *other, bool live)
{
        const struct option_table *table = one->desc->options;

        for (size_t i = 0; i < table->count; i++) {
                const struct option_table single = {.options = &table->options[i], .count = 1};

                if ((live || !is_live_option(one->desc, table->options[i].name))
                        && !dispatch_equal(one->options, other->options, &single, NULL))
                        return false;
        }
        return true;
}

bool target_tree_equal(const struct target_tree *one, const struct target_tree *other, bool live)
{
        if (one->count != other->count)
                return false;
        for (unsigned i = 0; i < one->count; i++) {
                const struct target_node *node = &one->nodes[i], *twin = &other->nodes[i];

                if (node->desc != twin->desc || node->parent != twin->parent || node->index != twin->index
                        || !options_equal(node, twin, live))
                        return false;
        }
        return true;
}
