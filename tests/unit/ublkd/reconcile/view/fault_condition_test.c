/* SPDX-License-Identifier: MIT */
/* fault_condition: each fault is one condition, and its consent names all faults in force. */
#include "ublkd/reconcile/view/fault_condition.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <stdlib.h>

static const struct row {
        const char *what;
        struct fault_report reports[_REGION_FAULT_MAX];
        enum region_fault fault;
        enum condition_status status;
        const char *words[2];
} rows[] = {
        {"no fault",                                {},                                                                         REGION_FAULT_FLUSH, CONDITION_ABSENT, {}                                          },
        {"a flush failed, and the file is whole",
         {[REGION_FAULT_FLUSH] = {.number = 2, .op = STATS_FLUSH, .error = ENOSPC}},                                            REGION_FAULT_CUT,
         CONDITION_ABSENT,                                                                                                                                            {}                                          },
        {"a flush failed",                          {[REGION_FAULT_FLUSH] = {.number = 2, .op = STATS_FLUSH, .error = ENOSPC}},
         REGION_FAULT_FLUSH,                                                                                                                        CONDITION_FALSE,  {"A flush failed: No space left on device."}},
        {"a write with FUA failed at a known time",
         {[REGION_FAULT_FLUSH] = {.number = 1, .op = STATS_WRITE, .error = EIO, .at = 1000000}},
         REGION_FAULT_FLUSH,                                                                                                                        CONDITION_FALSE,
         {"A write to stable storage failed at 1970-01-01T00:00:01Z: Input/output error."}                                                                                                                        },
        {"the file was cut off",                    {[REGION_FAULT_CUT] = {.number = 1, .detail = 4096}},                       REGION_FAULT_CUT,
         CONDITION_FALSE,                                                                                                                                             {"it had 4096 bytes"}                       },
        {"both",
         {[REGION_FAULT_FLUSH] = {.number = 3, .op = STATS_FLUSH, .error = EIO},
                        [REGION_FAULT_CUT] = {.number = 5, .detail = 512}},
         REGION_FAULT_CUT,                                                                                                                          CONDITION_FALSE,  {"it had 512 bytes"}                        },
};

/* An unmount hangs while the disk has no worker, and a mount would survive the consent. */
static void test_order_of_the_advice(void)
{
        const struct fault_report reports[_REGION_FAULT_MAX] = {
                [REGION_FAULT_CUT] = {.number = 1, .detail = 4096}
        };
        struct device_condition condition = {};
        const char *restore, *unmount, *accept;

        CHECK_INT(fault_condition(reports, REGION_FAULT_CUT, "data", &condition), 0);
        CHECK(strstr(condition.message, "backing store was cut off"));
        restore = strstr(condition.message, "Restore the store in place");
        unmount = strstr(condition.message, "unmount the disk");
        accept = strstr(condition.message, "ublkctl restart --accept-write-errors=");
        CHECK(restore && unmount && accept && restore < unmount && unmount < accept);
        free(condition.message);
}

static void check_row(const struct row *row)
{
        struct device_condition condition = {};
        struct device_faults faults;
        char token[WRITE_ERRORS_TOKEN_SIZE], consent[2 * WRITE_ERRORS_TOKEN_SIZE + 64];
        unsigned before = check_failures;

        fault_numbers(row->reports, &faults);
        CHECK_INT(faults.flush, row->reports[REGION_FAULT_FLUSH].number);
        CHECK_INT(faults.cut, row->reports[REGION_FAULT_CUT].number);
        CHECK_INT(fault_condition(row->reports, row->fault, "data", &condition), 0);
        CHECK_INT(condition.status, row->status);
        if (row->status == CONDITION_ABSENT) {
                CHECK(!condition.message);
                return;
        }
        CHECK_INT(condition.reason,
                row->fault == REGION_FAULT_CUT ? REASON_BACKING_TRUNCATED : REASON_FLUSH_FAILED);
        write_errors_token(&faults, token);
        snprintf(consent, sizeof(consent), "'ublkctl restart --accept-write-errors=%s data'", token);
        CHECK(strstr(condition.message, consent));
        for (size_t i = 0; i < ARRAY_SIZE(row->words) && row->words[i]; i++)
                CHECK(strstr(condition.message, row->words[i]));
        if (check_failures > before)
                fprintf(stderr, "%s: %s\n", row->what, condition.message);
        free(condition.message);
}

int main(void)
{
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                check_row(&rows[i]);
        test_order_of_the_advice();
        return check_report();
}
