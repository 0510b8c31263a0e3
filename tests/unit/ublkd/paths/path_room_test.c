/* SPDX-License-Identifier: MIT */
/* path_room: low before a write finds no room, and with a hysteresis. */
#include "ublkd/paths/path_room.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"

enum { MIB = 1 << 20 };

static struct path_room judge(bool low, uint64_t before, uint64_t missing, uint64_t available, uint64_t total)
{
        const struct path_room was = {
                .low = low, .missing = missing, .available = before * MIB, .seen_at = 1};
        const struct path_space space = {
                .missing = missing * MIB, .available = available * MIB, .total = total * MIB, .at = 2};

        return path_room_judge(&was, &space);
}

int main(void)
{
        static const struct {
                bool before;
                uint64_t missing, available, total; /* MiB */
                bool low;
        } rows[] = {
                {false, 500, 51, 1000, false}, /* sparse, and room enough for now */
                {false, 500, 50, 1000, false},
                {false, 500, 49, 1000, true }, /* below 5 % */
                {true,  500, 60, 1000, true }, /* the hysteresis */
                {true,  500, 70, 1000, false},
                {false, 0,   0,  1000, false}, /* allocated in full: it needs nothing more */
                {false, 10,  20, 1000, false}, /* what it may need is there */
                {true,  10,  20, 1000, false},
                {false, 1,   0,  1000, true },
                {false, 1,   0,  0,    false}, /* the file system shows no size */
        };
        struct path_room room;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (!CHECK_INT(
                            judge(rows[i].before, 1, rows[i].missing, rows[i].available, rows[i].total).low,
                            rows[i].low))
                        fprintf(stderr, "row %zu\n", i);
        room = judge(true, 40, 500, 30, 1000); /* not each look is a change */
        CHECK_INT(room.available, 40 * MIB);
        CHECK_INT(room.seen_at, 1);
        room = judge(true, 40, 500, 19, 1000);
        CHECK_INT(room.available, 19 * MIB);
        CHECK_INT(room.seen_at, 2);
        room = judge(true, 10, 500, 30, 1000);
        CHECK_INT(room.available, 30 * MIB);
        return check_report();
}
