/* SPDX-License-Identifier: MIT */
/* What a disk may hold: for each sector, the contents that are admissible after a crash, or in an answer.
 *
 * A sector has versions: what was there at first, and one of each request that changes it, with the moments at which
 * that was begun and answered. A version is settled when it was answered (death of a worker: what was answered
 * survives), or when it was made durable (power cut: answered with FUA, or answered before a flush was begun that was
 * itself answered). A version is admissible if it was begun, and no settled version was begun after this one was
 * answered. So of requests that were under way at the same time any may be the last one, and one that was never
 * answered may be there or not, in each sector for itself.
 *
 * Each version has contents of its own in each sector, or is zeroes. Contents of no version are a lie, and so are those
 * of another sector. */
#pragma once

#include "targets/target.h"
#include "tests/crash/crash_image.h"

struct model_request {
        enum io_op op;
        unsigned flags;
        uint64_t first, count; /* sectors */
        uint64_t begun, done;  /* moments; done: RECORD_NEVER until it is answered */
        uint64_t durable;      /* set by model_settle() */
        int result;
};

struct model {
        uint64_t seed, sectors;
        bool discard_is_undefined;      /* a discarded sector has any of its earlier contents, or zeroes */
        bool announces_no_cache;        /* the kernel sends neither a flush nor FUA */
        bool *filled;                   /* which sectors are not zeroes at first */
        struct model_request *requests; /* the version of request N is N + 1; 0 is what was there at first */
        unsigned count, room;
        struct model_sector {
                unsigned *versions; /* in the order in which they were begun, without 0 */
                unsigned count, room;
        } *sector;
        bool out_of_memory;
};

/* A sector with contents that are not admissible. */
struct model_finding {
        uint64_t sector;
        enum model_contents { MODEL_VERSION, MODEL_ZEROES, MODEL_UNKNOWN } contents;
        unsigned version; /* MODEL_VERSION: which one it is; of this sector or of another one */
        unsigned settled; /* the version that was settled last, which there should be, or a later one */
};

int model_init(struct model *model, uint64_t seed, uint64_t sectors);
void model_clear(struct model *model);

/* Write what a version has in the sectors from `first` on to `data`. Versions of discards and zeroes have none. */
void model_contents(const struct model *model, unsigned version, uint64_t first, uint64_t count, char *data);
/* Note that a request is begun. Return its version; 0: out of memory. Free the places when it changes nothing. */
unsigned model_begin(struct model *model, const struct model_request *request);
/* Note its answer. */
void model_end(struct model *model, unsigned version, int result, uint64_t moment);
/* Find out of each answered request when it became durable. After the last answer. */
void model_settle(struct model *model);

/* Return whether the data of a read, which was begun and answered at these moments, are admissible. */
bool model_accepts_read(const struct model *model, uint64_t first, uint64_t count, const char *data,
        uint64_t begun, uint64_t done, struct model_finding *ret);
/* Return whether the whole disk after a crash at `moment` is admissible. */
bool model_accepts_disk(const struct model *model, const char *data, enum crash_kind kind, uint64_t moment,
        struct model_finding *ret);
