/* SPDX-License-Identifier: MIT */
/* Makes of a record what a crash could have left in the files, and writes only what differs to them.
 *
 * CRASH_WORKER_DEATH at a moment: what was done by then is there, in the order in which it was done. Of what was in
 * flight, each sector may be there.
 * CRASH_POWER_CUT at a moment: what was done before a flush of the same file began is there, if that flush was done
 * by then; and so is a durable write that was done. Of all else that was begun, each sector may be there, whatever
 * there is of the others.
 *
 * A sector (CRASH_SECTOR bytes) is never torn. The size of a file follows what is there of the operations that change
 * it. Holes are written as zeroes: a target that asks where the holes are learns nothing of these images. */
#pragma once

#include "tests/crash/crash_record.h"

enum { CRASH_SECTOR = 512 };

enum crash_kind { CRASH_WORKER_DEATH, CRASH_POWER_CUT, _CRASH_KIND_MAX };

struct crash_file {
        char *base;  /* when the record began; record->capacity bytes */
        char *made;  /* by image_make() */
        char *there; /* in the file */
        uint64_t base_size, made_size, there_size;
        int fd;
};

struct crash_image {
        struct crash_file files[RECORD_FILES_MAX];
        unsigned count;
        uint64_t capacity; /* bytes of each of the above */
};

/* Which of the operations that may be there are: each with this chance, as a whole or in parts of `grain` bytes. */
struct crash_fate {
        unsigned percent;
        uint64_t grain; /* a multiple of CRASH_SECTOR; 0: as a whole */
        uint64_t seed;
};

/* Take over `count` open files for the images. Return 0 or -errno; clear it in any case. */
int image_init(struct crash_image *image, const int *fds, unsigned count, uint64_t capacity);
void image_clear(struct crash_image *image);
/* Read from open files what they have when the record begins. Return 0 or -errno. */
int image_take_base(struct crash_image *image, const int *fds);
/* Make the files of a crash at `moment`. Return how many operations were undecided, and so given to fate. */
unsigned image_make(struct crash_image *image, const struct record *record, enum crash_kind kind,
        uint64_t moment, const struct crash_fate *fate);
/* Write what was made to the files. Return 1: they have changed; 0: they have been so already; -errno. */
int image_write(struct crash_image *image);
/* Read what a target has made of the files. Return 0 or -errno. */
int image_look(struct crash_image *image);
/* Return whether open files have just what was made. */
bool image_is(const struct crash_image *image, const int *fds);
