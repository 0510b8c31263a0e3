/* SPDX-License-Identifier: MIT */
/* What both programs know of the fault target. */
#include "targets/fault/fault_desc.h"
#include "targets/fault/fault_cache.h"
#include "targets/fault/fault_counts.h"
#include "targets/fault/fault_parse.h"
#include "targets/target_tree.h"
#include "ublkd/values/json_print.h"

#include <errno.h>
#include <string.h>

static int check(const void *options, uint64_t size, struct problem_list *problems)
{
        struct fault_rules rules;

        (void)size;
        return fault_parse(options, &rules, problems);
}

/* ublkd shares memory with one target of a tree: the rules of another could not change. */
static bool is_first(const struct target_tree *tree, const struct target_node *node)
{
        for (const struct target_node *other = tree->nodes; other != node; other++)
                if (other->desc == &fault_desc)
                        return false;
        return true;
}

static int check_below(
        const struct target_tree *tree, const struct target_node *node, struct problem_list *problems)
{
        if (node->child_count == 0)
                return problem_add(problems, EINVAL, "/target/child", "MissingField",
                        "child is missing; give the target that the requests go to");
        if (!is_first(tree, node))
                return problem_add(problems, EINVAL, "/target/type", "SecondFaultTarget",
                        "the tree has another fault target; leave one out");
        return 0;
}

static bool has_size(const void *options, const bool *children, unsigned count)
{
        (void)options;
        return count > 0 && children[0];
}

static size_t pack_live(const void *options, unsigned char ret[static TARGET_LIVE_MAX])
{
        _cleanup_problems_ struct problem_list none = {};
        struct fault_rules rules = {};

        _Static_assert(sizeof(rules) <= TARGET_LIVE_MAX, "they have room");
        if (fault_parse(options, &rules, &none)
                < 0) /* on ENOMEM: of another version, which no worker takes */
                rules = (struct fault_rules){};
        memcpy(ret, &rules, sizeof(rules));
        return sizeof(rules);
}

static bool add_number(cJSON *object, const char *name, uint64_t value)
{
        static const uint64_t exact = UINT64_C(1) << 53;

        return cJSON_AddNumberToObject(object, name, (double)(value < exact ? value : exact));
}

static bool add_rule(cJSON *list, const struct fault_rule *rule, const struct fault_tally *tally)
{
        cJSON *item = cJSON_CreateObject();

        if (!cJSON_AddItemToArray(list, item)) {
                cJSON_Delete(item);
                return false;
        }
        return cJSON_AddStringToObject(item, "action", fault_action_to_string(rule->action))
               && add_number(item, "matched", tally->matched) && add_number(item, "fired", tally->fired);
}

/* Until the worker has seen newer rules, the tallies are those of older ones. */
static const struct fault_tally *tally_of(const struct fault_rule *rule, const struct fault_tally *tally)
{
        static const struct fault_tally none;

        return tally->rule == fault_rule_name(rule) ? tally : &none;
}

static bool show_counts(
        const void *options, const uint64_t counts[static TARGET_COUNTS_MAX], cJSON *statistics)
{
        _cleanup_problems_ struct problem_list none = {};
        struct fault_rules rules;
        struct fault_counts all;
        cJSON *object = cJSON_AddObjectToObject(statistics, "fault"), *list;

        if (!object || fault_parse(options, &rules, &none) < 0)
                return false;
        memcpy(&all, counts, sizeof(all));
        list = add_number(object, "seed", all.seed) ? cJSON_AddArrayToObject(object, "rules") : NULL;
        for (unsigned i = 0; list && i < rules.count; i++)
                if (!add_rule(list, &rules.rules[i], tally_of(&rules.rules[i], &all.tallies[i])))
                        return false;
        return list != NULL;
}

static const char *refuse_powercut(const void *options)
{
        const struct fault_options *fault = options;

        return fault->volatile_cache
                       ? NULL
                       : "the disk has no volatile cache that could lose anything; set volatileCache";
}

/* Both are of the newest versions of the blocks. */
static bool show_powercut(const struct target_findings *findings, cJSON *ret)
{
        uint64_t written = findings->done > findings->bytes ? findings->done - findings->bytes : 0;

        return json_add_integer(ret, "seed", findings->number)
               && json_add_integer(ret, "bytesWritten", written)
               && target_findings_show(findings, "lost", ret);
}

static const struct target_verb verbs[] = {
        [FAULT_VERB_POWERCUT] = {.name = "powercut",
                                 .summary = "Loses a part of the volatile cache, and kills the worker",
                                 .arguments = &fault_powercut_arguments_table,
                                 .anywhere = true,
                                 .for_tests = true,
                                 .loses = true,
                                 .half_done = "a cut that has begun goes on with the next worker, which "
                             "finishes it with its first request", .refuse = refuse_powercut,
                                 .show_result = show_powercut},
        [FAULT_VERB_SCRUB] = SCRUB_VERB(&fault_scrub_arguments_table),
};
_Static_assert(
        sizeof(struct fault_powercut_arguments) <= TARGET_ARGUMENTS_MAX, "they are handed on as a copy");

static const char *const live_options[] = {"seed", "rules", NULL};

const struct target_desc fault_desc = {
        .name = "fault",
        .summary = "Serves another target with faults that rules ask for: for tests only",
        .flags = TARGET_ONE_QUEUE | TARGET_NATIVE_FUA | TARGET_REISSUE_SAFE | TARGET_IS_PART | TARGET_SEES_ALL
                 | TARGET_FOR_TESTS | TARGET_SCANS,
        .waits = {.children = 1, .watched = true},
        .options = &fault_options_table,
        .verbs = verbs,
        .verb_count = ARRAY_SIZE(verbs),
        .kept_disk_bytes = FAULT_CACHE_BYTES,
        .kept_version = 1,
        .live_options = live_options,
        .pack_live = pack_live,
        .show_counts = show_counts,
        .check = check,
        .check_below = check_below,
        .has_size = has_size,
};
