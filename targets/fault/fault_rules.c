/* SPDX-License-Identifier: MIT */
/* What rules decide about a request. A random number follows from the seed, the place of the rule and how many requests it has
 * matched, so no rule changes the luck of another one. */
#include "targets/fault/fault_rules.h"

#include <string.h>

enum { ONE_MILLION = 1000000, FAULT_ERRNO_MAX = 4095 };

/* The finaliser of SplitMix64: each bit of the argument changes about half of the result. */
static uint64_t mix(uint64_t value)
{
        value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
        return value ^ value >> 31;
}

uint64_t fault_random(uint64_t seed, uint64_t number)
{
        return mix(mix(seed) + number * UINT64_C(0x9e3779b97f4a7c15));
}

bool fault_rule_counts_awaits(const struct fault_rule *rule)
{
        return rule->action == FAULT_DIE && (rule->value == FAULT_SUSPENDED || rule->value == FAULT_RESUMED);
}

static bool is_valid(const struct fault_rule *rule)
{
        static const uint64_t most[_FAULT_ACTION_MAX] = {
                [FAULT_ERROR] = FAULT_ERRNO_MAX,
                [FAULT_DELAY] = FAULT_DELAY_MAX,
                [FAULT_SHORT] = UINT64_MAX,
                [FAULT_DIE] = _FAULT_MOMENT_MAX - 1,
        };

        return rule->action < _FAULT_ACTION_MAX && rule->nth > 0 && rule->value <= most[rule->action]
               && (rule->action != FAULT_ERROR || rule->value > 0)
               && (!fault_rule_counts_awaits(rule) || rule->await > 0);
}

bool fault_rules_are_valid(const struct fault_rules *rules)
{
        bool valid = rules->version == FAULT_RULES_VERSION && rules->count <= FAULT_RULES_MAX;

        for (unsigned i = 0; valid && i < rules->count; i++)
                valid = is_valid(&rules->rules[i]);
        return valid;
}

uint64_t fault_rule_name(const struct fault_rule *rule)
{
        uint64_t words[sizeof(*rule) / sizeof(uint64_t)], name = 1;

        _Static_assert(sizeof(*rule) % sizeof(uint64_t) == 0, "it has no holes");
        memcpy(words, rule, sizeof(words));
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                name = mix(name + words[i]);
        return name | 1;
}

void fault_tallies_begin(const struct fault_rules *rules, struct fault_tally tallies[static FAULT_RULES_MAX])
{
        for (unsigned i = 0; i < FAULT_RULES_MAX; i++) {
                uint64_t name = i < rules->count ? fault_rule_name(&rules->rules[i]) : 0;

                if (tallies[i].rule != name)
                        tallies[i] = (struct fault_tally){.rule = name};
        }
}

static bool matches(const struct fault_rule *rule, const struct target_io *io)
{
        bool limited = rule->from > 0 || rule->to > 0;

        if (!(rule->operations & 1U << io->op))
                return false;
        if (!limited)
                return true;
        return io->op != IO_FLUSH && io->offset + io->length > rule->from
               && (rule->to == 0 || io->offset < rule->to);
}

/* Count the request, and return whether the rule does something to it. */
static bool fires(const struct fault_rule *rule, struct fault_tally *tally, uint64_t random)
{
        tally->matched++;
        if (tally->matched % rule->nth != 0 || (rule->times > 0 && tally->fired >= rule->times))
                return false;
        if (random % ONE_MILLION >= rule->per_million)
                return false;
        tally->fired++;
        return true;
}

void fault_decide(const struct fault_rules *rules, uint64_t seed,
        struct fault_tally tallies[static FAULT_RULES_MAX], const struct target_io *io,
        struct fault_decision *ret)
{
        *ret = (struct fault_decision){};
        for (unsigned i = 0; i < rules->count; i++) {
                const struct fault_rule *rule = &rules->rules[i];
                uint64_t random = fault_random(seed + i, tallies[i].matched);

                if (!matches(rule, io) || !fires(rule, &tallies[i], random))
                        continue;
                if (rule->action == FAULT_DELAY) {
                        ret->delay += rule->value;
                        continue;
                }
                ret->rule = rule;
                ret->random = fault_random(random, 1);
                return;
        }
}
