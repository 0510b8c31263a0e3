/* SPDX-License-Identifier: MIT */
/* Whether a path still leads to the backing store of a disk, so that the store can be opened again after the
 * disk was removed. Plain data. */
#pragma once

enum backing_reach {
        BACKING_REACH_UNKNOWN,   /* there is no disk, or ublkd has not looked yet */
        BACKING_REACH_AT_PATH,   /* the path of the spec leads to the store */
        BACKING_REACH_ELSEWHERE, /* the path leads to something else, or to nothing */
        BACKING_REACH_UNNAMED,   /* a file without a name: its space is freed with the disk */
        _BACKING_REACH_MAX
};
