/* SPDX-License-Identifier: MIT */
/* PURE: whether the room below a sparse file is low. A disk on a sparse file fails writes, or holds them up, once the
 * file system is full, and the administrator should know before. */
#pragma once

#include "ublkd/paths/path_wire.h"

/* What a look has measured, in bytes. */
struct path_space {
        uint64_t missing;          /* of the file: not allocated yet */
        uint64_t available, total; /* of its file system; available to users */
        uint64_t at;               /* when; CLOCK_REALTIME, microseconds */
};

/* Judge the room. It is low from less than 5 % of the file system until 7 %, as long as the file may need more than is
 * there. While it is low, the numbers and their time stay as in `before` until what is available has halved or doubled, so that not
 * each look is a change. */
struct path_room path_room_judge(const struct path_room *before, const struct path_space *space);
