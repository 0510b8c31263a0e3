/* SPDX-License-Identifier: MIT */
/* The tree of targets of a spec, from its JSON. The nodes are in the order of their levels, so that the children of one
 * follow one another, and no function calls itself. */
#include "targets/known/target_tree_parse.h"
#include "targets/known/known_targets.h"
#include "ublkd/base/cleanup.h"

#include <assert.h>
#include <stdio.h>

struct parsing {
        struct target_tree *tree;
        const cJSON *objects[TARGET_NODES_MAX];
        struct problem_list *problems;
        bool is_full; /* and there is a problem that says so */
};

static int report(
        struct parsing *parsing, unsigned number, const char *field, const char *reason, const char *sentence)
{
        char pointer[TARGET_POINTER_SIZE], whole[TARGET_POINTER_SIZE + 16];

        target_tree_pointer(parsing->tree, number, pointer);
        snprintf(whole, sizeof(whole), "%s%s", pointer, field);
        return problem_add(parsing->problems, EINVAL, whole, reason, "%s", sentence);
}

/* Write the list of targets into `text`: "loop", "null" or "qcow2". */
static void list_targets(char *text, size_t size)
{
        size_t count, used = 0;
        const struct target_desc *const *all = known_targets_all(&count);

        text[0] = '\0';
        for (size_t i = 0; i < count && used < size; i++) {
                const char *separator = i == 0 ? "" : i + 1 == count ? " or " : ", ";
                int r = snprintf(text + used, size - used, "%s\"%s\"", separator, all[i]->name);

                assert(r >= 0);
                used += (size_t)r;
        }
}

/* Find the target that an object names. Return 0 (also if a problem was added) or -ENOMEM. */
static int find_target(struct parsing *parsing, unsigned number)
{
        const cJSON *type = cJSON_GetObjectItemCaseSensitive(parsing->objects[number], "type");
        struct target_node *node = &parsing->tree->nodes[number];
        const char *reason = "UnknownTarget", *what = "there is no such target";
        char names[256], sentence[320];

        if (cJSON_IsString(type))
                node->desc = known_target_find(type->valuestring);
        if (node->desc)
                return 0;
        if (!type) {
                reason = "MissingField";
                what = "type is missing";
        } else if (!cJSON_IsString(type)) {
                reason = "WrongType";
                what = "type is not a string";
        }
        list_targets(names, sizeof(names));
        snprintf(sentence, sizeof(sentence), "%s; give %s", what, names);
        return report(parsing, number, "/type", reason, sentence);
}

/* Add a node below `parent`. Return 0 (also if a problem was added) or -ENOMEM. */
static int add_node(struct parsing *parsing, unsigned parent, const cJSON *object, int index)
{
        struct target_tree *tree = parsing->tree;
        unsigned number = tree->count, level = tree->nodes[parent].level + 1;
        struct target_node *above = &tree->nodes[parent];

        if (parsing->is_full)
                return 0;
        parsing->is_full = number == TARGET_NODES_MAX;
        if (parsing->is_full)
                return report(parsing, parent, "", "TooManyTargets",
                        "the tree has more than 64 targets; leave it out, or give fewer below it");
        if (level > TARGET_LEVELS_MAX)
                return report(parsing, parent, index < 0 ? "/child" : "/children", "TooManyLevels",
                        "the tree has more than 8 levels; leave it out");
        if (above->child_count++ == 0)
                above->first_child = number;
        tree->nodes[number] = (struct target_node){.parent = parent, .level = level, .index = index};
        parsing->objects[number] = object;
        tree->count++;
        return 0;
}

static int check_count(struct parsing *parsing, unsigned number, int count)
{
        const struct option_table *table = parsing->tree->nodes[number].desc->options;
        bool few = count < (int)table->children_min;
        char sentence[96];

        if (!few && count <= (int)table->children_max)
                return 0;
        snprintf(sentence, sizeof(sentence), "children has %d entries; give %zu to %zu", count,
                table->children_min, table->children_max);
        return report(parsing, number, "/children", few ? "TooFew" : "TooMany", sentence);
}

/* As lists of other objects (dispatch.c): the entries are looked at also where there are too few or too many. */
static int add_children(struct parsing *parsing, unsigned number, const cJSON *list)
{
        int most = (int)parsing->tree->nodes[number].desc->options->children_max, index = 0, r;
        const cJSON *item;

        if (!cJSON_IsArray(list))
                return report(parsing, number, "/children", "WrongType",
                        "children is not a list; give a list of targets");
        r = check_count(parsing, number, cJSON_GetArraySize(list));
        cJSON_ArrayForEach (item, list) {
                unsigned before = parsing->tree->count;

                if (r < 0 || index == most)
                        break;
                r = add_node(parsing, number, item, index++);
                if (parsing->tree->count == before) /* each further one would be the same problem */
                        break;
        }
        return r;
}

static int add_all_below(struct parsing *parsing, unsigned number)
{
        const struct option_table *table = parsing->tree->nodes[number].desc->options;
        const cJSON *object = parsing->objects[number],
                    *child = cJSON_GetObjectItemCaseSensitive(object, "child"),
                    *children = cJSON_GetObjectItemCaseSensitive(object, "children");
        int r = 0;

        if (table->has_child && child)
                r = add_node(parsing, number, child, -1);
        if (r < 0 || table->children_max == 0)
                return r;
        if (children)
                return add_children(parsing, number, children);
        if (table->has_child) /* one of the two will do: see the target's check_below() */
                return 0;
        return report(
                parsing, number, "/children", "MissingField", "children is missing; give a list of targets");
}

static int parse_node(struct parsing *parsing, unsigned number)
{
        struct target_node *node = &parsing->tree->nodes[number];
        const struct option_table *table;
        char pointer[TARGET_POINTER_SIZE];
        int r;

        if (!cJSON_IsObject(parsing->objects[number]))
                return report(parsing, number, "", "WrongType",
                        "this is not an object; give an object with a \"type\"");
        r = find_target(parsing, number);
        if (r < 0 || !node->desc)
                return r;
        table = node->desc->options;
        /* A target without options has a struct of no size. */
        node->options = calloc(1, table->struct_size > 0 ? table->struct_size : 1);
        if (!node->options)
                return -ENOMEM;
        target_tree_pointer(parsing->tree, number, pointer);
        r = dispatch(parsing->objects[number], table, pointer, node->options, parsing->problems);
        return r == -ENOMEM ? r : add_all_below(parsing, number);
}

int target_tree_parse(const cJSON *object, struct target_tree **ret, struct problem_list *problems)
{
        _cleanup_target_tree_ struct target_tree *tree = calloc(1, sizeof(*tree));
        struct parsing parsing = {.tree = tree, .objects = {object}, .problems = problems};
        struct target_node *fitting;
        int r = 0;

        if (!tree)
                return -ENOMEM;
        tree->nodes = calloc(TARGET_NODES_MAX, sizeof(*tree->nodes));
        if (!tree->nodes)
                return -ENOMEM;
        tree->count = 1;
        tree->nodes[0] = (struct target_node){.level = 1, .index = -1};
        for (unsigned i = 0; r >= 0 && i < tree->count; i++)
                r = parse_node(&parsing, i);
        if (r < 0)
                return r;
        fitting = realloc(tree->nodes, tree->count * sizeof(*tree->nodes)); /* most trees are one target */
        if (!fitting)
                return -ENOMEM;
        tree->nodes = fitting;
        *ret = TAKE_PTR(tree);
        return 0;
}
