/* SPDX-License-Identifier: MIT */
/* source_condition: what the file that owns a device has to do with its spec. */
#include "ublkd/reconcile/view/source_condition.h"

#include "tests/unit/check.h"

#include <stdlib.h>

static char source[] = "/etc/ublkd/devices/data.json", trouble[] = "The file is not taken: it is empty.";

static const struct {
        const char *source, *trouble;
        enum source_state state;
        enum condition_status status;
        enum condition_reason reason;
        const char *shown; /* in the message; NULL: there is none */
} rows[] = {
        {NULL,   NULL,    SOURCE_APPLIED, CONDITION_ABSENT, REASON_NONE,          NULL   },
        {NULL,   trouble, SOURCE_INVALID, CONDITION_ABSENT, REASON_NONE,          NULL   }, /* a client has made it */
        {source, NULL,    SOURCE_APPLIED, CONDITION_TRUE,   REASON_OWNED_BY_FILE, source },
        {source, trouble, SOURCE_APPLIED, CONDITION_TRUE,   REASON_OWNED_BY_FILE, source },
        {source, trouble, SOURCE_INVALID, CONDITION_FALSE,  REASON_FILE_INVALID,  trouble},
        {source, trouble, SOURCE_REFUSED, CONDITION_FALSE,  REASON_FILE_REFUSED,  trouble},
        {source, trouble, SOURCE_GONE,    CONDITION_FALSE,  REASON_FILE_GONE,     trouble},
        {source, NULL,    SOURCE_GONE,    CONDITION_TRUE,   REASON_OWNED_BY_FILE,
         source                                                                          }, /* ENOMEM, for the sentence */
};

int main(void)
{
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const struct device_record record = {.source = (char *)rows[i].source,
                        .source_trouble = (char *)rows[i].trouble,
                        .source_state = rows[i].state};
                struct device_condition condition = {};

                CHECK_INT(source_condition(&record, &condition), 0);
                CHECK_INT(condition.status, rows[i].status);
                CHECK_INT(condition.reason, rows[i].reason);
                CHECK(!rows[i].shown == !condition.message);
                CHECK(!rows[i].shown || strstr(condition.message, rows[i].shown));
                free(condition.message);
        }
        return check_report();
}
