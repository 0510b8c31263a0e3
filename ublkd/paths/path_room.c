/* SPDX-License-Identifier: MIT */
/* Whether the room below a sparse file is low. */
#include "ublkd/paths/path_room.h"

enum { LOW_PERCENT = 5, ENOUGH_PERCENT = 7 };

static bool is_low(bool before, const struct path_space *space)
{
        uint64_t percent = before ? ENOUGH_PERCENT : LOW_PERCENT;

        /* The division first: nothing overflows. */
        return space->missing > space->available && space->available < space->total / 100 * percent;
}

static bool is_near(uint64_t one, uint64_t other)
{
        return one / 2 <= other && other / 2 <= one;
}

struct path_room path_room_judge(const struct path_room *before, const struct path_space *space)
{
        if (!is_low(before->low, space))
                return (struct path_room){.known = true};
        if (before->low && is_near(before->available, space->available))
                return *before;
        return (struct path_room){.known = true,
                .low = true,
                .missing = space->missing,
                .available = space->available,
                .seen_at = space->at};
}
