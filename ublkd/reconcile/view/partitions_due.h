/* SPDX-License-Identifier: MIT */
/* PURE: when the partitions of a disk are to be looked at. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What the partitions that are shown depend on. */
struct partitions_key {
        uint64_t cookie;  /* of the kernel's disk */
        uint64_t size;    /* of the disk, bytes */
        uint64_t changes; /* how often a program has closed the disk after it could write to it */
        int number;
        bool shown; /* spec.partitions */
};

enum partitions_result {
        PARTITIONS_SETTLED, /* there is nothing left to be done */
        PARTITIONS_REFUSED, /* some could not be changed */
        PARTITIONS_UNKNOWN, /* the look has failed */
};

/* Zeros: the disk was not looked at. */
struct partitions_history {
        bool known;                    /* it was; the rest is meaningful */
        enum partitions_result result; /* of the last look */
        struct partitions_key key;     /* of the last look */
        uint64_t ended_at;             /* CLOCK_MONOTONIC microseconds */
        unsigned failures;             /* in a row; at least 1 if not settled */
};

/* Return when to look again: 0: now; UINT64_MAX: not before the key changes. Writes to a disk are looked at once a
 * second at most; what failed is tried after 5 s, and then less and less often, down to every 5 minutes. Writes to a
 * disk that could not be looked at change nothing about that: its owner could keep others waiting. */
uint64_t partitions_due(const struct partitions_history *history, const struct partitions_key *now);

/* Note that a look with this key has ended. now: CLOCK_MONOTONIC. */
void partitions_ended(struct partitions_history *history, const struct partitions_key *key,
        enum partitions_result result, uint64_t now);
