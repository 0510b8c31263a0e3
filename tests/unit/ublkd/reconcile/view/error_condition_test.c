/* SPDX-License-Identifier: MIT */
/* error_condition: failed requests are shown for a day, with errno, operation and place; the worst gives the reason. */
#include "ublkd/reconcile/view/error_condition.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <stdlib.h>

static const uint64_t now = UINT64_C(1790000000000000), day = ERRORS_SHOWN_SECONDS * USEC_PER_SEC;

static void none_without_an_error(void)
{
        struct device_condition condition = {};

        CHECK_INT(error_condition(&(const struct io_errors){}, now, &condition), 0);
        CHECK_INT(condition.status, CONDITION_ABSENT);
        CHECK_INT(error_condition_end(&(const struct io_errors){}, now), 0);
}

static void errno_operation_place_and_time_are_in_the_sentence(void)
{
        static const char *const words[] = {
                "3 writes", "4096 bytes", "byte 1048576", "ENOSPC", "2026-09-21T"};
        const struct io_errors errors = {
                .of[STATS_WRITE] = {
                                    .count = 3, .at = now, .offset = 1 << 20, .length = 4096, .error = ENOSPC}
        };
        struct device_condition condition = {};

        CHECK_INT(error_condition(&errors, now, &condition), 0);
        CHECK_INT(condition.status, CONDITION_FALSE);
        CHECK_INT(condition.reason, REASON_WRITE_FAILED);
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (!CHECK(strstr(condition.message, words[i])))
                        fprintf(stderr, "%s: %s\n", words[i], condition.message);
        free(condition.message);
}

static void the_worst_gives_the_reason(void)
{
        static const struct {
                enum stats_op one, other;
                enum condition_reason reason;
        } rows[] = {
                {STATS_READ,    STATS_WRITE,        REASON_WRITE_FAILED  },
                {STATS_READ,    STATS_WRITE_ZEROES, REASON_WRITE_FAILED  },
                {STATS_READ,    STATS_FLUSH,        REASON_READ_FAILED   },
                {STATS_DISCARD, STATS_FLUSH,        REASON_REQUEST_FAILED},
                {STATS_DISCARD, STATS_OTHER,        REASON_REQUEST_FAILED},
                {STATS_DISCARD, STATS_DISCARD,      REASON_DISCARD_FAILED},
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct io_errors errors = {};
                struct device_condition condition = {};

                errors.of[rows[i].one] = errors.of[rows[i].other] =
                        (struct error_report){.count = 1, .at = now, .error = EIO};
                CHECK_INT(error_condition(&errors, now, &condition), 0);
                CHECK_INT(condition.reason, rows[i].reason);
                free(condition.message);
        }
}

static void it_ends_a_day_after_the_last(void)
{
        const struct io_errors errors = {
                .of[STATS_READ] = {.count = 1, .at = now - day + 1, .error = EIO},
                .of[STATS_WRITE] = {.count = 1, .at = now - day,     .error = EIO},
        };
        struct device_condition condition = {};

        CHECK_INT(error_condition(&errors, now, &condition), 0);
        CHECK_INT(condition.reason, REASON_READ_FAILED);
        free(condition.message);
        CHECK_INT(error_condition_end(&errors, now), now + 1);
        condition = (struct device_condition){};
        CHECK_INT(error_condition(&errors, now + 1, &condition), 0);
        CHECK_INT(condition.status, CONDITION_ABSENT);
}

int main(void)
{
        none_without_an_error();
        errno_operation_place_and_time_are_in_the_sentence();
        the_worst_gives_the_reason();
        it_ends_a_day_after_the_last();
        return check_report();
}
