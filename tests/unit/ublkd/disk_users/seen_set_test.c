/* SPDX-License-Identifier: MIT */
/* seen_set: against a plain table of what was added. */
#include "ublkd/disk_users/seen_set.h"

#include "tests/unit/check.h"

static void test_an_empty_set(void)
{
        const struct seen_set set = {};

        CHECK(!seen_set_has(&set, (struct seen_pair){.first = 1}));
}

/* Pairs that differ in one half, or have it exchanged, are different pairs. */
static void test_many_pairs(void)
{
        enum { MANY = 5000 };
        struct seen_set set = {};

        for (uint64_t i = 1; i <= MANY; i++) {
                CHECK_INT(seen_set_add(&set, (struct seen_pair){i, i % 7}), 0);
                CHECK_INT(seen_set_add(&set, (struct seen_pair){i, i % 7}), 0); /* it is there */
        }
        CHECK_INT(set.count, MANY);
        for (uint64_t i = 1; i <= MANY; i++) {
                CHECK(seen_set_has(&set, (struct seen_pair){i, i % 7}));
                CHECK(!seen_set_has(&set, (struct seen_pair){i, i % 7 + 1}));
                CHECK(!seen_set_has(&set, (struct seen_pair){MANY + i, i % 7}));
        }
        seen_set_clear(&set);
        CHECK(!seen_set_has(&set, (struct seen_pair){1, 1}));
}

static void test_one_half_is_zero(void)
{
        struct seen_set set = {};

        CHECK_INT(seen_set_add(&set, (struct seen_pair){.second = 3}), 0);
        CHECK(seen_set_has(&set, (struct seen_pair){.second = 3}));
        CHECK(!seen_set_has(&set, (struct seen_pair){.first = 3}));
        seen_set_clear(&set);
}

int main(void)
{
        test_an_empty_set();
        test_many_pairs();
        test_one_half_is_zero();
        return check_report();
}
