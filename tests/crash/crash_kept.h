/* SPDX-License-Identifier: MIT */
/* The kept memory of a target under judgement: what it had at each moment, and what the next worker is given.
 *
 * There are two regions, of the worker before the crash and of the one after it. At each moment the memory of the first is
 * compared with that of the moment before, and the pages that differ are noted. After the death of the worker the second
 * has the memory of a moment, after a power cut zeroes, as a region that is made after a boot.
 *
 * It sees what is in the memory at moments, not the stores between two: a worker that is killed between two stores
 * is the matter of tests/unit/targets/kept/record_log_kill_test.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { KEPT_FRESH = -1 };

struct kept_page;

struct crash_kept {
        int before, after;       /* the regions; -1: the target keeps nothing, and all functions do nothing */
        const char *live;        /* the memory of `before` */
        char *there;             /* that of `after` */
        uint64_t offset, size;   /* of each in its region; bytes, whole pages */
        char *base;              /* when the record began */
        char *last;              /* at the moment that was noted last */
        char *made;              /* by kept_make() */
        struct kept_page *pages; /* what has changed, in the order of the moments */
        int count, room;
        /* Which memory it is: KEPT_FRESH, or how many of the pages it has, over what was there when the record began. */
        int made_number, given_number; /* what was made; what the worker after the last crash was given */
        bool out_of_memory;
};

/* Make the regions for the target of a spec, with so many queues. Return 0, also if it keeps nothing; -errno. Clear it in any
 * case. */
int kept_init(struct crash_kept *kept, const char *spec, unsigned queues);
void kept_clear(struct crash_kept *kept);
/* Note that the record begins. */
void kept_begin(struct crash_kept *kept);
/* Note what the memory has at a moment. */
void kept_note(struct crash_kept *kept, uint64_t moment);
/* Make the memory of a moment; kept_make_fresh(): of a region that is new. */
void kept_make(struct crash_kept *kept, uint64_t moment);
void kept_make_fresh(struct crash_kept *kept);
/* Return whether what was made differs from what the last worker was given. */
bool kept_differs(const struct crash_kept *kept);
/* Put what was made into the region for the next worker. */
void kept_give(struct crash_kept *kept);
