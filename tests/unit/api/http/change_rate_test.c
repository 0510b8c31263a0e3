/* SPDX-License-Identifier: MIT */
/* change_rate: how many changes an account may make at once, and when the next one. */
#include "api/http/change_rate.h"

#include "tests/unit/check.h"

enum { SECOND = 1000 * 1000, ALICE = 1000, BOB = 2000 };

static void test_all_at_once_and_then_one_by_one(void)
{
        static struct change_rate rate;
        uint64_t now = 77 * SECOND;

        for (int i = 0; i < 30; i++)
                CHECK_INT(change_rate_take(&rate, ALICE, 30, now), 0);
        CHECK_INT(change_rate_take(&rate, ALICE, 30, now), 2 * SECOND);
        CHECK_INT(change_rate_take(&rate, BOB, 30, now), 0);
        CHECK_INT(change_rate_take(&rate, ALICE, 30, now + 2 * SECOND - 1), 1);
        CHECK_INT(change_rate_take(&rate, ALICE, 30, now + 2 * SECOND), 0);
        CHECK_INT(change_rate_take(&rate, ALICE, 30, now + 2 * SECOND), 2 * SECOND);
}

static void test_spread_they_are_never_refused(void)
{
        static struct change_rate rate;

        for (uint64_t now = SECOND; now < UINT64_C(3600) * SECOND; now += 2 * SECOND)
                CHECK_INT(change_rate_take(&rate, ALICE, 30, now), 0);
}

static void test_no_more_than_a_minute_is_saved(void)
{
        static struct change_rate rate;
        uint64_t now = SECOND;

        CHECK_INT(change_rate_take(&rate, ALICE, 3, now), 0);
        now += UINT64_C(86400) * SECOND;
        for (int i = 0; i < 3; i++)
                CHECK_INT(change_rate_take(&rate, ALICE, 3, now), 0);
        CHECK(change_rate_take(&rate, ALICE, 3, now) > 0);
}

/* A new account takes the place of the one that has changed least. */
static void test_many_accounts(void)
{
        static struct change_rate rate;
        uint64_t now = SECOND;

        for (int i = 0; i < 2; i++)
                CHECK_INT(change_rate_take(&rate, ALICE, 2, now), 0);
        for (uint32_t account = 10000; account < 10000 + 2 * CHANGE_RATE_ACCOUNTS; account++)
                CHECK_INT(change_rate_take(&rate, account, 2, now), 0);
        CHECK_INT(rate.used, CHANGE_RATE_ACCOUNTS);
        CHECK(change_rate_take(&rate, ALICE, 2, now) > 0);
}

/* Places of accounts that have not changed for long are used before new ones. */
static void test_places_are_used_again(void)
{
        static struct change_rate rate;
        uint64_t now = SECOND;

        for (uint32_t account = 1; account < 5000; account++) {
                CHECK_INT(change_rate_take(&rate, account, 60, now), 0);
                now += 2 * SECOND;
        }
        CHECK_INT(rate.used, 1);
}

int main(void)
{
        test_all_at_once_and_then_one_by_one();
        test_spread_they_are_never_refused();
        test_no_more_than_a_minute_is_saved();
        test_many_accounts();
        test_places_are_used_again();
        return check_report();
}
