/* SPDX-License-Identifier: MIT */
/* space_condition: a store without room is reported, with what becomes of its writes; and one with little room before
 * that. */
#include "ublkd/reconcile/view/space_condition.h"

#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

#define LOW                                                                                                  \
        {.low = true,                                                                                        \
                .known = true,                                                                               \
                .missing = UINT64_C(5) << 30,                                                                \
                .available = UINT64_C(7) << 20,                                                              \
                .seen_at = 9}

static void check(const struct space_facts *facts, enum condition_reason reason, uint64_t seen_at,
        const char *words, const char *more)
{
        struct device_condition condition = {};

        CHECK_INT(space_condition(facts, &condition), 0);
        CHECK_INT(condition.status, words ? CONDITION_FALSE : CONDITION_ABSENT);
        CHECK_INT(condition.reason, reason);
        CHECK_INT(condition.observed_at, seen_at);
        CHECK(!words == !condition.message);
        CHECK(!words || strstr(condition.message, words));
        CHECK(!more || strstr(condition.message, more));
        free(condition.message);
}

static void one_store(void)
{
        static const struct store_room low = {.room = LOW}, enough = {.room.known = true};
        static const struct {
                struct space_facts facts;
                enum condition_reason reason;
                const char *words, *more; /* NULL: no message */
        } rows[] = {
                {{},                                           REASON_NONE,       NULL,                              NULL},
                {{.waits = true},                              REASON_NONE,       NULL,                              NULL},
                {{.full_since = 1},                            REASON_STORE_FULL, "onFull is \"error\"",             NULL},
                {{.full_since = 1, .waits = true},             REASON_STORE_FULL, "onFull is \"wait\"",              NULL},
                {{.full_since = 1, .rooms = &low, .count = 1}, REASON_STORE_FULL, "onFull is \"error\"",
                 NULL                                                                                                    },
                {{.rooms = &enough, .count = 1},               REASON_NONE,       NULL,                              NULL},
                {{.rooms = &low, .count = 1},                  REASON_STORE_LOW,  "the backing file had 7 MiB left",
                 "need 5120 MiB"                                                                                         },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                check(&rows[i].facts, rows[i].reason, rows[i].reason == REASON_STORE_LOW ? 9 : 0,
                        rows[i].words, rows[i].more);
}

/* Each that is low is named by its place; the time is that of the oldest look. */
static void several_stores(void)
{
        struct store_room rooms[] = {
                {.room = LOW,        .place = "/target/children/0/path"},
                {.room.known = true, .place = "/target/children/1/path"},
                {.room = LOW,        .place = "/target/children/2/path"},
        };
        const struct space_facts facts = {.rooms = rooms, .count = ARRAY_SIZE(rooms)};

        rooms[2].room.seen_at = 4;
        check(&facts, REASON_STORE_LOW, 4, "the backing file of /target/children/0/path had 7 MiB left",
                "finds none. The file system of the backing file of /target/children/2/path had");
        rooms[0].room.low = false;
        rooms[2].room.low = false;
        check(&facts, REASON_NONE, 0, NULL, NULL);
}

int main(void)
{
        one_store();
        several_stores();
        return check_report();
}
