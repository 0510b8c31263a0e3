/* SPDX-License-Identifier: MIT */
/* Which refusals are logged: so many in a minute, and then how many were not. */
#include "api/http/audit.h"

#include "tests/unit/check.h"

enum { MINUTE = 60 * 1000 * 1000, MOST = 120 };

static void test_a_flood(void)
{
        struct audit audit = {};
        unsigned left_out = 1, logged = 0;

        for (uint64_t now = 5 * MINUTE; now < 6 * MINUTE; now += MINUTE / 100) {
                logged += audit_takes_refusal(&audit, 1000, MOST, now, &left_out);
                CHECK_INT(left_out, 0);
        }
        CHECK_INT(logged, REFUSALS_LOGGED);
        CHECK(audit_takes_refusal(&audit, 1000, MOST, 6 * MINUTE, &left_out));
        CHECK_INT(left_out, 100 - REFUSALS_LOGGED);
        CHECK(audit_takes_refusal(&audit, 1000, MOST, 6 * MINUTE + 1, &left_out));
        CHECK_INT(left_out, 0);
}

static void test_a_few(void)
{
        struct audit audit = {};
        unsigned left_out;

        for (uint64_t now = 1; now < 300 * (uint64_t)MINUTE; now += MINUTE / REFUSALS_LOGGED) {
                CHECK(audit_takes_refusal(&audit, 1000, MOST, now, &left_out));
                CHECK_INT(left_out, 0);
        }
}

/* A flood of one account leaves the records of another one. */
static void test_another_account_in_a_flood(void)
{
        struct audit audit = {};
        unsigned left_out;

        for (unsigned i = 0; i < 1000; i++)
                (void)audit_takes_refusal(&audit, 1000, MOST, MINUTE, &left_out);
        for (unsigned i = 0; i < REFUSALS_LOGGED; i++)
                CHECK(audit_takes_refusal(&audit, 1001, MOST, MINUTE, &left_out));
        CHECK(!audit_takes_refusal(&audit, 1001, MOST, MINUTE, &left_out));
        CHECK(audit_takes_refusal(&audit, 1001, MOST, 2 * MINUTE, &left_out));
        CHECK_INT(left_out, 1000 - REFUSALS_LOGGED + 1);
}

/* All accounts together cannot flood the log either. */
static void test_a_flood_of_many_accounts(void)
{
        struct audit audit = {};
        unsigned left_out, logged = 0;

        for (uint32_t account = 0; account < 2 * AUDIT_ACCOUNTS; account++)
                logged += audit_takes_refusal(&audit, account, MOST, MINUTE, &left_out);
        CHECK_INT(logged, MOST);
        CHECK(audit_takes_refusal(&audit, 0, MOST, 2 * MINUTE, &left_out));
        CHECK_INT(left_out, 2 * AUDIT_ACCOUNTS - MOST);
        for (uint32_t account = 1; account < 2 * AUDIT_ACCOUNTS; account++)
                CHECK_INT(audit_takes_refusal(&audit, account, UINT32_MAX, 2 * MINUTE, &left_out),
                        account < AUDIT_ACCOUNTS);
        CHECK_INT(left_out, 0);
}

int main(void)
{
        test_a_flood();
        test_a_few();
        test_another_account_in_a_flood();
        test_a_flood_of_many_accounts();
        return check_report();
}
