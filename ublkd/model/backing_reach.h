/* SPDX-License-Identifier: MIT */
/* Whether what a disk is made on can still be reached once its disk is gone. */
#pragma once

enum backing_reach {
        BACKING_REACH_UNKNOWN,   /* there is no disk, or nobody has looked yet */
        BACKING_REACH_AT_PATH,   /* the path of its spec leads to it */
        BACKING_REACH_ELSEWHERE, /* the path leads to something else, or to nothing */
        BACKING_REACH_UNNAMED,   /* a file without a name: its space is freed with the disk */
        _BACKING_REACH_MAX
};
