/* SPDX-License-Identifier: MIT */
/* The texts of the files of a policy, into the policy. */
#include "ublkd/policy/policy_parse.h"
#include "targets/known/known_targets.h"

#include "ublkd/policy/policy.h"
#include "ublkd/policy/policy_accounts.h"
#include "ublkd/policy/policy_ceilings.h"
#include "ublkd/policy/policy_fault.h"
#include "ublkd/policy/policy_pairs.h"
#include "ublkd/policy/policy_who.h"
#include "ublkd/values/json_check.h"
#include "ublkd/values/json_util.h"
#include "ublkd/values/path_text.h"
#include "ublkd/values/quantity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct parse {
        struct policy *policy;
        const struct policy_accounts *accounts;
        struct policy_faults *faults;
};

/* ---- one rule ---- */

static int check_targets(struct parse *parse, const struct policy_rule *rule, const char *pointer)
{
        const cJSON *item;
        unsigned index = 0;
        int r = 0;

        cJSON_ArrayForEach (item, rule->options.targets) {
                if (r >= 0 && !known_target_find(item->valuestring))
                        r = policy_fault_add(parse->faults, pointer, "targets", (int)index,
                                "there is no target %s; 'ublkctl targets' lists them", item->valuestring);
                index++;
        }
        return r;
}

/* A path of a spec is compared with them as text. */
static int check_directories(struct parse *parse, const struct policy_rule *rule, const char *pointer)
{
        const cJSON *item;
        unsigned index = 0;
        int r = 0;

        cJSON_ArrayForEach (item, rule->options.directories) {
                _cleanup_free_ char *plain = NULL;

                if (r >= 0)
                        r = path_make_absolute("/", item->valuestring, &plain);
                if (r >= 0 && strcmp(plain, item->valuestring) != 0)
                        r = policy_fault_add(parse->faults, pointer, "directories", (int)index,
                                "%s has \".\", \"..\", \"//\" or a \"/\" at its end; give %s",
                                item->valuestring, plain);
                index++;
        }
        return r;
}

static int parse_ids(struct parse *parse, struct policy_rule *rule, const char *pointer)
{
        long long first, last;
        int fields;

        rule->ids_first = rule->ids_last = -1;
        if (!rule->options.ids)
                return 0;
        fields = sscanf(rule->options.ids, "%lld-%lld", &first, &last);
        if (fields < 2)
                last = first;
        if (last < first || last > DEVICE_NUMBER_MAX)
                return policy_fault_add(parse->faults, pointer, "ids", -1,
                        "the range %s is not valid; give numbers from 0 to %d, the smaller one first",
                        rule->options.ids, DEVICE_NUMBER_MAX);
        rule->ids_first = first;
        rule->ids_last = last;
        return 0;
}

static int parse_cpus(struct parse *parse, struct policy_rule *rule, const char *pointer)
{
        if (!rule->options.cpus || parse_cpu_list(rule->options.cpus, rule->cpus, sizeof(rule->cpus)) == 0)
                return 0;
        return policy_fault_add(parse->faults, pointer, "cpus", -1,
                "%s is not a list of CPUs; give numbers up to 4095 and ascending ranges, like \"0-3,8\"",
                rule->options.cpus);
}

static int check_bursts(
        struct parse *parse, const struct io_limits *limits, const char *pointer, const char *direction)
{
        char name[32];
        int r = 0;

        snprintf(name, sizeof(name), "limits/%s", direction);
        if (limits->iops_burst > 0 && limits->iops == 0)
                r = policy_fault_add(
                        parse->faults, pointer, name, -1, "iopsBurst is given without iops; give iops, too");
        if (r >= 0 && limits->bytes_per_sec_burst > 0 && limits->bytes_per_sec == 0)
                r = policy_fault_add(parse->faults, pointer, name, -1,
                        "bytesPerSecBurst is given without bytesPerSec; give bytesPerSec, too");
        return r;
}

/* The rest of the rule counts: its users keep the devices that they have. A rule without `devices` refuses on purpose. */
static int note_memory(struct parse *parse, const struct policy_rule *rule, const char *pointer)
{
        uint64_t most = rule->options.resources.memory_max, least = policy_ceilings_least_memory();
        char text[SIZE_TEXT_MAX];

        if (most == 0 || most >= least || rule->options.waiting || rule->options.devices == 0)
                return 0;
        format_size(least, text);
        return policy_fault_note(parse->faults, &parse->policy->notes, "PolicyMemoryTooLow", pointer,
                "resources/memoryMax",
                "the rule %s lets its users create and change no device, because each must have a "
                "resources.memoryMax of %s at least, and of more with queues of more or larger requests; "
                "raise the ceiling, leave it out, or give \"waiting\": true",
                rule->options.name, text);
}

static int take_rule(struct parse *parse, struct policy_rule *rule, const char *pointer)
{
        int r = policy_fault_place(parse->faults, pointer, &rule->place);

        if (r >= 0)
                r = policy_who_parse(rule, parse->accounts, pointer, parse->faults, &parse->policy->notes);
        if (r >= 0)
                r = check_targets(parse, rule, pointer);
        if (r >= 0)
                r = check_directories(parse, rule, pointer);
        if (r >= 0)
                r = parse_ids(parse, rule, pointer);
        if (r >= 0)
                r = parse_cpus(parse, rule, pointer);
        if (r >= 0)
                r = check_bursts(parse, &rule->options.limits.read, pointer, "read");
        if (r >= 0)
                r = check_bursts(parse, &rule->options.limits.write, pointer, "write");
        if (r >= 0)
                r = note_memory(parse, rule, pointer);
        return r;
}

static int add_rule(struct parse *parse, const cJSON *document, const char *pointer)
{
        struct policy *policy = parse->policy;
        struct policy_rule *rule, *rules;
        _cleanup_problems_ struct problem_list none = {};
        int r;

        if (policy->rule_count == POLICY_RULES_MAX)
                return policy_fault_add(parse->faults, pointer, NULL, -1,
                        "all files together have more than %d rules; remove some", POLICY_RULES_MAX);
        rules = reallocarray(policy->rules, policy->rule_count + 1, sizeof(*rules));
        if (!rules)
                return -ENOMEM;
        policy->rules = rules;
        rule = &rules[policy->rule_count++];
        *rule = (struct policy_rule){};
        r = dispatch(document, &policy_rule_options_table, pointer, &rule->options, &none);
        return r < 0 ? r : take_rule(parse, rule, pointer);
}

/* ---- one file ---- */

static int add_pool(struct parse *parse, const cJSON *document)
{
        struct policy *policy = parse->policy;
        struct policy_pool_options options;
        _cleanup_problems_ struct problem_list none = {};
        struct policy_pool *pools;
        int r;

        if (policy_pool(policy, document->string))
                return policy_fault_add(parse->faults, "/pools", document->string, -1,
                        "another file has a pool of this name; give it another name, or remove one");
        pools = reallocarray(policy->pools, policy->pool_count + 1, sizeof(*pools));
        if (!pools)
                return -ENOMEM;
        policy->pools = pools;
        r = dispatch(document, &policy_pool_options_table, "", &options, &none);
        if (r < 0)
                return r;
        pools[policy->pool_count] =
                (struct policy_pool){.name = strdup(document->string), .directory = options.directory};
        return pools[policy->pool_count++].name ? 0 : -ENOMEM;
}

static int take_options(struct parse *parse, const struct policy_options *options)
{
        const cJSON *item;
        unsigned index = 0;
        char pointer[32];
        int r = 0;

        cJSON_ArrayForEach (item, options->pools) {
                if (r >= 0)
                        r = add_pool(parse, item);
        }
        cJSON_ArrayForEach (item, options->rules) {
                snprintf(pointer, sizeof(pointer), "/rules/%u", index++);
                if (r >= 0)
                        r = add_rule(parse, item, pointer);
        }
        return r;
}

static int report_all(struct policy_faults *faults, const struct problem_list *problems)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < problems->count; i++)
                r = policy_fault_add(
                        faults, problems->items[i].pointer, NULL, -1, "%s", problems->items[i].detail);
        return r;
}

static int parse_file(struct parse *parse, const struct policy_file *file)
{
        _cleanup_problems_ struct problem_list found = {};
        _cleanup_json_ cJSON *document = NULL;
        struct policy_options options;
        struct json_fault fault;
        int r;

        parse->faults->file = file;
        if (json_check(file->text, file->size, &fault) < 0)
                return policy_fault_add_json(parse->faults, &fault);
        document = cJSON_Parse(file->text);
        if (!document)
                return -ENOMEM;
        r = dispatch(document, &policy_options_table, "", &options, &found);
        if (r == 0)
                r = take_options(parse, &options);
        else if (r == -EINVAL)
                r = report_all(parse->faults, &found);
        dispatch_release(&options, &policy_options_table);
        return r;
}

/* Without them one user would have what a group has, for each of its uids. */
static int read_subuids(struct parse *parse)
{
        struct policy *policy = parse->policy;
        int r;

        if (!policy_asks_groups(policy))
                return 0;
        r = policy_accounts_all_subuids(parse->accounts, &policy->subuids, &policy->subuid_count);
        if (r >= 0 || r == -ENOMEM)
                return r;
        parse->faults->faulty = true;
        return problem_add(parse->faults->problems, EINVAL, "", "PolicyInvalid",
                "The subordinate uids of /etc/subuid cannot be read: %s; correct the file, because rules for "
                "groups, units and control groups need them",
                r == -EBADMSG ? "the path leads to something else, or a line has another number than a plain "
                                "decimal"
                              : strerror(-r));
}

int policy_parse(const struct policy_files *files, const struct policy_accounts *accounts,
        struct policy *policy, struct problem_list *problems)
{
        struct policy_faults faults = {.problems = problems};
        struct parse parse = {.policy = policy, .accounts = accounts, .faults = &faults};
        int r = 0;

        for (size_t i = 0; r >= 0 && i < files->count; i++)
                r = parse_file(&parse, &files->items[i]);
        if (r >= 0)
                r = read_subuids(&parse);
        if (r >= 0 && !faults.faulty)
                r = policy_pairs_check(policy, problems, &faults.faulty);
        if (r < 0)
                return r;
        return faults.faulty ? -EINVAL : 0;
}
