/* SPDX-License-Identifier: MIT */
/* From the options of a fault target to its rules. */
#include "targets/fault/fault_parse.h"

#include <errno.h>
#include <stdio.h>

enum { DATA_OPERATIONS = 1 << IO_READ | 1 << IO_WRITE, ALL_OPERATIONS = (1 << _IO_OP_MAX) - 1 };

/* In the order of the schema. */
static const int errors[] = {
        EIO, ENOSPC, EROFS, EOPNOTSUPP, ENOMEM, ETIMEDOUT, EINVAL, ENODATA, EILSEQ, ENOLINK};

static const struct {
        const char *name, *field; /* the field is for this action only; NULL: it has none */
        unsigned operations;
} actions[] = {
        [FAULT_ERROR] = {"error",    "error",  ALL_OPERATIONS },
        [FAULT_DELAY] = {"delay",    "delay",  ALL_OPERATIONS },
        [FAULT_SHORT] = {"short",    "bytes",  DATA_OPERATIONS},
        [FAULT_HANG] = {"hang",     NULL,     ALL_OPERATIONS },
        [FAULT_DIE] = {"die",      "moment", ALL_OPERATIONS },
        [FAULT_CORRUPT] = {"corrupt",  NULL,     DATA_OPERATIONS},
        [FAULT_POWERCUT] = {"powercut", NULL,     ALL_OPERATIONS },
};
_Static_assert(ARRAY_SIZE(actions) == _FAULT_ACTION_MAX, "every action has a name");

const char *fault_action_to_string(enum fault_action action)
{
        return actions[action].name;
}

static int report(struct problem_list *problems, unsigned number, const char *field, const char *reason,
        const char *sentence)
{
        char pointer[64];

        snprintf(pointer, sizeof(pointer), "/target/rules/%u/%s", number, field);
        return problem_add(problems, EINVAL, pointer, reason, "%s", sentence);
}

static uint64_t value_of(const struct fault_rule_options *options)
{
        switch ((enum fault_action)options->action) {
        case FAULT_ERROR:
                return (uint64_t)errors[options->error];
        case FAULT_DELAY:
                return options->delay;
        case FAULT_SHORT:
                return options->bytes;
        case FAULT_DIE:
                return (uint64_t)options->moment;
        default:
                return 0;
        }
}

static struct fault_rule rule_of(const struct fault_rule_options *options)
{
        unsigned wanted = options->op == FAULT_OP_ANY ? ALL_OPERATIONS : 1U << (options->op - FAULT_OP_FIRST);

        struct fault_rule rule = {
                .action = (uint32_t)options->action,
                .operations = wanted & actions[options->action].operations,
                .nth = (uint32_t)options->nth,
                .per_million = (uint32_t)options->per_million,
                .times = (uint32_t)options->times,
                .from = options->from,
                .to = options->to,
                .value = value_of(options),
        };

        rule.await = fault_rule_counts_awaits(&rule) ? (uint32_t)options->await : 0;
        return rule;
}

/* A field of another action has no effect, and is most likely a mistake. */
static int check_fields(
        const cJSON *object, unsigned number, const struct fault_rule *rule, struct problem_list *problems)
{
        enum fault_action action = (enum fault_action)rule->action;
        int r = 0;

        if (cJSON_GetObjectItemCaseSensitive(object, "await") && !fault_rule_counts_awaits(rule))
                r = report(problems, number, "await", "FieldOfAnotherAction",
                        "await is for die at the moments suspended and resumed; leave it out");
        for (unsigned i = 0; r >= 0 && i < _FAULT_ACTION_MAX; i++)
                if (i != action && actions[i].field
                        && cJSON_GetObjectItemCaseSensitive(object, actions[i].field))
                        r = report(problems, number, actions[i].field, "FieldOfAnotherAction",
                                "the field is for another action; leave it out");
        return r;
}

static int check_rule(const struct fault_rule *rule, unsigned number, struct problem_list *problems)
{
        int r = 0;

        if (rule->operations == 0)
                r = report(problems, number, "op", "ActionWithoutData",
                        "the operation moves no data for this action; give read or write, or leave it out");
        if (r >= 0 && rule->to > 0 && rule->to <= rule->from)
                r = report(problems, number, "to", "EmptyRange",
                        "the part of the disk has no bytes; give more than from");
        if (r >= 0 && rule->action == FAULT_DELAY && rule->value > FAULT_DELAY_MAX)
                r = report(problems, number, "delay", "OutOfRange",
                        "the delay is longer than an hour; give a shorter one");
        return r;
}

static int take_rule(
        const cJSON *object, unsigned number, struct fault_rule *ret, struct problem_list *problems)
{
        struct fault_rule_options options;
        char pointer[64];
        int r;

        snprintf(pointer, sizeof(pointer), "/target/rules/%u", number);
        r = dispatch(object, &fault_rule_options_table, pointer, &options, problems);
        if (r < 0)
                return r == -EINVAL ? 0 : r;
        *ret = rule_of(&options);
        r = check_fields(object, number, ret, problems);
        return r < 0 ? r : check_rule(ret, number, problems);
}

int fault_parse(const struct fault_options *options, struct fault_rules *ret, struct problem_list *problems)
{
        struct fault_rules rules = {.version = FAULT_RULES_VERSION, .seed = (uint64_t)options->seed};
        const cJSON *object;
        int r;

        cJSON_ArrayForEach (object, options->rules) {
                if (rules.count == FAULT_RULES_MAX)
                        break;
                r = take_rule(object, rules.count, &rules.rules[rules.count], problems);
                if (r >= 0 && rules.rules[rules.count].action == FAULT_POWERCUT && !options->volatile_cache)
                        r = report(problems, rules.count, "action", "PowercutWithoutCache",
                                "the disk has no volatile cache that could lose anything; set volatileCache, "
                                "or "
                                "give die");
                if (r < 0)
                        return r;
                rules.count++;
        }
        *ret = rules;
        return 0;
}
