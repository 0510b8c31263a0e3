/* SPDX-License-Identifier: MIT */
/* Which refusals are logged: so many in a minute, and then how many were not. */
#include "api/http/audit.h"

#include "tests/unit/check.h"

enum { MINUTE = 60 * 1000 * 1000 };

static void test_a_flood(void)
{
        struct audit audit = {};
        unsigned left_out = 1, logged = 0;

        for (uint64_t now = 5 * MINUTE; now < 6 * MINUTE; now += MINUTE / 100) {
                logged += audit_takes_refusal(&audit, now, &left_out);
                CHECK_INT(left_out, 0);
        }
        CHECK_INT(logged, REFUSALS_LOGGED);
        CHECK(audit_takes_refusal(&audit, 6 * MINUTE, &left_out));
        CHECK_INT(left_out, 100 - REFUSALS_LOGGED);
        CHECK(audit_takes_refusal(&audit, 6 * MINUTE + 1, &left_out));
        CHECK_INT(left_out, 0);
}

static void test_a_few(void)
{
        struct audit audit = {};
        unsigned left_out;

        for (uint64_t now = 1; now < 300 * (uint64_t)MINUTE; now += MINUTE / REFUSALS_LOGGED) {
                CHECK(audit_takes_refusal(&audit, now, &left_out));
                CHECK_INT(left_out, 0);
        }
}

int main(void)
{
        test_a_flood();
        test_a_few();
        return check_report();
}
