/* SPDX-License-Identifier: MIT */
/* The image of a device in a pool, and the job that works on it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct image_job;

/* Private to device_image.c. Zeros: nothing is known. */
struct device_image {
        struct image_job *job; /* NULL: none under way */
        uint64_t has;          /* bytes that the image has at least; 0: unknown */
        int error;             /* of the last job that was to prepare or grow it, not reported yet; or 0 */
        char *sentence;        /* of that error, owned; NULL on ENOMEM */
        bool left;             /* the next worker shows what is wrong with the image, once */
        bool removed, kept;    /* the record may go */
        bool existed;          /* when its removal began */
        unsigned failures;     /* of removals, in a row */
        uint64_t remove_at;    /* no removal before; CLOCK_MONOTONIC */
};
