/* SPDX-License-Identifier: MIT */
/* What both programs know of the linear target. */
#include "targets/linear/linear_desc.h"
#include "targets/linear/linear_options.h"
#include "targets/target_tree.h"

#include <stdio.h>

static int add(struct problem_list *problems, const char *pointer, const char *reason, const char *sentence)
{
        return problem_add(problems, EINVAL, pointer, reason, "%s", sentence);
}

/* Return whether a growth of what is below changes the size of the node. */
static bool is_fixed(const struct target_node *node)
{
        const struct linear_options *options = node->options;

        return node->desc == &linear_desc && options->length > 0;
}

/* Data that lies behind a child moves when the child grows, and would be lost. */
static int check_lengths(
        const struct target_tree *tree, const struct target_node *node, struct problem_list *problems)
{
        char pointer[64];
        int r = 0;

        for (unsigned i = 0; r >= 0 && i + 1 < node->child_count; i++) {
                if (is_fixed(&tree->nodes[node->first_child + i]))
                        continue;
                snprintf(pointer, sizeof(pointer), "/target/children/%u", i);
                r = add(problems, pointer, "LengthOfChild",
                        "the data of the next target would move when this one grows; give it as the child of "
                        "a linear target with a length");
        }
        return r;
}

static int check_below(
        const struct target_tree *tree, const struct target_node *node, struct problem_list *problems)
{
        const struct linear_options *options = node->options;
        bool one = node->child_count > 0 && tree->nodes[node->first_child].index < 0;
        int r = 0;

        if (node->child_count == 0)
                return add(problems, "/target", "ChildOrChildren",
                        "child and children are missing; give one of them");
        if (one && node->child_count > 1)
                return add(problems, "/target/children", "ChildOrChildren",
                        "child and children are both given; leave it out, or child");
        if (one)
                return 0;
        if (options->offset > 0)
                r = add(problems, "/target/offset", "PartOfChildren",
                        "offset is given with children, and they follow one another whole; leave it out");
        if (r >= 0 && options->length > 0)
                r = add(problems, "/target/length", "PartOfChildren",
                        "length is given with children, and they follow one another whole; leave it out");
        return r < 0 ? r : check_lengths(tree, node, problems);
}

static bool has_size(const void *linear_options, const bool *children, unsigned count)
{
        const struct linear_options *options = linear_options;

        return options->length > 0 || (count > 0 && children[count - 1]);
}

static const struct target_verb verbs[] = {SCRUB_VERB(&linear_scrub_arguments_table)};

const struct target_desc linear_desc = {
        .name = "linear",
        .summary = "Serves a part of another target, or several targets one after another",
        .flags = TARGET_NEVER_WAITS | TARGET_NATIVE_FUA | TARGET_REISSUE_SAFE | TARGET_REGISTERED_BUFFERS
                 | TARGET_IS_PART | TARGET_SCANS,
        .options = &linear_options_table,
        .verbs = verbs,
        .verb_count = sizeof(verbs) / sizeof(verbs[0]),
        .check_below = check_below,
        .has_size = has_size,
};
