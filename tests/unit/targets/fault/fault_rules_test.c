/* SPDX-License-Identifier: MIT */
/* The rules of the fault target: which requests each kind of rule is for, and that a seed repeats them. */
#include "targets/fault/fault_rules.h"
#include "tests/unit/check.h"

#include <string.h>

enum { SEED = 42, ALL_OPERATIONS = (1 << _IO_OP_MAX) - 1, MILLION = 1000000 };

static const struct fault_rule each = {
        .action = FAULT_ERROR, .operations = ALL_OPERATIONS, .nth = 1, .per_million = MILLION};

/* A bit for each of `count` requests: whether the first rule ended it. */
static uint64_t run(const struct fault_rules *rules, uint64_t seed, struct fault_tally *tallies,
        const struct target_io *io, unsigned count)
{
        uint64_t ended = 0;

        for (unsigned i = 0; i < count; i++) {
                struct fault_decision decision;

                fault_decide(rules, seed, tallies, io, &decision);
                ended |= (uint64_t)(decision.rule == &rules->rules[0]) << i;
        }
        return ended;
}

static uint64_t run_one(const struct fault_rule *rule, const struct target_io *io, unsigned count)
{
        const struct fault_rules rules = {.count = 1, .rules = {*rule}};
        struct fault_tally tallies[FAULT_RULES_MAX] = {};

        fault_tallies_begin(&rules, tallies);
        return run(&rules, SEED, tallies, io, count);
}

static void test_operations(void)
{
        for (unsigned op = 0; op < _IO_OP_MAX; op++)
                for (unsigned mask = 0; mask <= ALL_OPERATIONS; mask++) {
                        struct fault_rule rule = each;

                        rule.operations = mask;
                        CHECK_INT(run_one(&rule, &(struct target_io){.op = op, .length = 512}, 1),
                                mask >> op & 1);
                }
}

static void test_range(void)
{
        static const struct {
                uint64_t from, to, offset;
                uint32_t length;
                bool matches;
        } cases[] = {
                {0,    0,    0,    512,     true },
                {512,  1024, 0,    512,     false},
                {512,  1024, 0,    1024,    true },
                {512,  1024, 512,  512,     true },
                {512,  1024, 1024, 512,     false},
                {512,  0,    0,    512,     false},
                {512,  0,    4096, 512,     true },
                {0,    512,  0,    512,     true },
                {0,    512,  512,  512,     false},
                {4096, 8192, 0,    1 << 20, true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const struct target_io io = {
                        .op = IO_WRITE, .offset = cases[i].offset, .length = cases[i].length};
                struct fault_rule rule = each;

                rule.from = cases[i].from;
                rule.to = cases[i].to;
                CHECK_INT(run_one(&rule, &io, 1), cases[i].matches);
        }
}

/* It is for no bytes in particular. */
static void test_flush_is_in_no_range(void)
{
        const struct target_io flush = {.op = IO_FLUSH};
        struct fault_rule rule = each;

        CHECK_INT(run_one(&rule, &flush, 1), 1);
        rule.to = 4096;
        CHECK_INT(run_one(&rule, &flush, 1), 0);
}

static void test_nth_and_times(void)
{
        const struct target_io io = {.op = IO_READ, .length = 512};
        struct fault_rule rule = each;

        rule.nth = 3;
        CHECK_INT(run_one(&rule, &io, 10), 0b0100100100);
        rule.times = 1;
        CHECK_INT(run_one(&rule, &io, 10), 0b0000000100);
        rule.nth = 1;
        rule.times = 2;
        CHECK_INT(run_one(&rule, &io, 10), 0b11);
}

/* The exact values: with others a seed of an older version would repeat nothing. */
static void test_probability_from_the_seed(void)
{
        const struct target_io io = {.op = IO_READ, .length = 512};
        struct fault_rule rule = each;
        unsigned fired = 0;

        rule.per_million = MILLION / 4;
        CHECK_INT(run_one(&rule, &io, 32), 0x220ef004);
        for (unsigned i = 0; i < 1000; i++) {
                struct fault_rules rules = {.count = 1, .rules = {rule}};
                struct fault_tally tallies[FAULT_RULES_MAX] = {};

                fired += (unsigned)__builtin_popcountll(run(&rules, i, tallies, &io, 64));
        }
        CHECK(fired > 15000 && fired < 17000); /* of 64000 */
}

static void test_delays_add_up_and_end_nothing(void)
{
        struct fault_rules rules = {
                .count = 4, .rules = {each, each, each, each}
        };
        struct fault_tally tallies[FAULT_RULES_MAX] = {};
        struct fault_decision decision;

        rules.rules[0].action = rules.rules[1].action = FAULT_DELAY;
        rules.rules[0].value = 5;
        rules.rules[1].value = 7;
        fault_tallies_begin(&rules, tallies);
        fault_decide(&rules, SEED, tallies, &(struct target_io){.length = 512}, &decision);
        CHECK_INT(decision.delay, 12);
        CHECK(decision.rule == &rules.rules[2]);
        CHECK_INT(tallies[1].fired, 1);
        CHECK_INT(tallies[2].fired, 1);
        CHECK_INT(tallies[3].matched, 0); /* the first that ends it counts */
}

/* What a rule has counted goes with its text. */
static void test_change_of_rules(void)
{
        struct fault_rules rules = {
                .count = 2, .rules = {each, each}
        };
        struct fault_tally tallies[FAULT_RULES_MAX] = {};
        const struct target_io io = {.length = 512};

        rules.rules[0].nth = 5;
        fault_tallies_begin(&rules, tallies);
        run(&rules, SEED, tallies, &io, 7);
        rules.rules[1].value = 1;
        fault_tallies_begin(&rules, tallies);
        CHECK_INT(tallies[0].matched, 7);
        CHECK_INT(tallies[0].fired, 1);
        CHECK_INT(tallies[1].matched, 0);
        rules.count = 0;
        fault_tallies_begin(&rules, tallies);
        CHECK_INT(tallies[0].matched, 0);
        CHECK_INT(tallies[0].rule, 0);
}

/* What fault_parse() never makes, and a process that writes to the region can. */
static void test_rules_that_no_spec_has(void)
{
        static const struct {
                struct fault_rule rule;
                bool valid;
        } cases[] = {
                {{.action = FAULT_ERROR, .nth = 1, .value = 5},                         true },
                {{.action = FAULT_ERROR, .nth = 0, .value = 5},                         false}, /* a division by it */
                {{.action = FAULT_ERROR, .nth = 1, .value = 0},                         false}, /* no error */
                {{.action = FAULT_ERROR, .nth = 1, .value = 4096},                      false},
                {{.action = FAULT_ERROR, .nth = 1, .value = UINT64_C(1) << 32},         false},
                {{.action = _FAULT_ACTION_MAX, .nth = 1},                               false},
                {{.action = UINT32_MAX, .nth = 1},                                      false},
                {{.action = FAULT_DIE, .nth = 1, .value = FAULT_AFTER},                 true },
                {{.action = FAULT_DIE, .nth = 1, .value = _FAULT_MOMENT_MAX},           false},
                {{.action = FAULT_DIE, .nth = 1, .value = FAULT_SUSPENDED, .await = 1}, true },
                {{.action = FAULT_DIE, .nth = 1, .value = FAULT_SUSPENDED},
                 false                                                                       }, /* it would count down from 0 */
                {{.action = FAULT_DIE, .nth = 1, .value = FAULT_RESUMED},               false},
                {{.action = FAULT_DELAY, .nth = 1, .value = FAULT_DELAY_MAX},           true },
                {{.action = FAULT_DELAY, .nth = 1, .value = FAULT_DELAY_MAX + 1},       false},
                {{.action = FAULT_SHORT, .nth = 1, .value = UINT64_MAX},                true },
                {{.action = FAULT_HANG, .nth = 1, .value = 1},                          false},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct fault_rules rules = {
                        .version = FAULT_RULES_VERSION, .count = 2, .rules = {each, cases[i].rule}
                };

                rules.rules[0].value = 5;
                if (!CHECK_INT(fault_rules_are_valid(&rules), cases[i].valid))
                        fprintf(stderr, "  of case %zu\n", i);
                rules.version++;
                CHECK(!fault_rules_are_valid(&rules));
        }
        CHECK(!fault_rules_are_valid(
                &(struct fault_rules){.version = FAULT_RULES_VERSION, .count = FAULT_RULES_MAX + 1}));
}

int main(void)
{
        test_rules_that_no_spec_has();
        test_operations();
        test_range();
        test_flush_is_in_no_range();
        test_nth_and_times();
        test_probability_from_the_seed();
        test_delays_add_up_and_end_nothing();
        test_change_of_rules();
        return check_report();
}
