/* SPDX-License-Identifier: MIT */
/* Which sizes of a worker the supervisor accepts. */
#include "ublkd/plan/worker_growth.h"

#include <errno.h>
#include <string.h>

/* What is computed with these must not wrap. */
static bool fits_claims(const struct disk_params *params, uint64_t size)
{
        for (size_t i = 0; i < params->claims.count; i++) {
                const struct backing_claim *claim = &params->claims.items[i];

                if (!claim->mapped && (claim->start > INT64_MAX || size > INT64_MAX - claim->start))
                        return false;
        }
        return size <= INT64_MAX;
}

static bool are_ranges_valid(const struct backing_claims *claims)
{
        for (size_t i = 0; i < claims->count; i++)
                if (claims->items[i].end < claims->items[i].start)
                        return false;
        return true;
}

static bool is_size_max_valid(const struct disk_params *params, uint64_t size_max)
{
        return size_max == UINT64_MAX || fits_claims(params, size_max); /* UINT64_MAX: it has no limit */
}

/* It is shown to people, and logged. */
static bool is_path_printable(const char *path)
{
        if (!path)
                return true;
        for (const char *c = path; *c; c++)
                if (*c <= ' ' || *c > '~')
                        return false;
        return strncmp(path, "/dev/", 5) == 0;
}

const char *worker_params_fault(const struct disk_params *params)
{
        bool valid = fits_claims(params, params->size) && are_ranges_valid(&params->claims)
                     && is_size_max_valid(params, params->size_max);

        if (!valid)
                return "it sent PARAMS with an impossible size";
        return is_path_printable(params->stable_path) ? NULL : "it sent PARAMS with an impossible path";
}

int worker_growth_ask(struct worker_growth *growth, const struct disk_params *params, uint64_t size)
{
        if (!fits_claims(params, size))
                return -EFBIG;
        growth->asked++;
        if (size > growth->size)
                growth->size = size;
        return 0;
}

/* A disk never shrinks under its users; and it grows only as far as the supervisor asked, which has claimed
 * that much of the backing store before. */
const char *worker_growth_answer(
        struct worker_growth *growth, const struct disk_params *params, const struct worker_msg *grown)
{
        uint64_t size = grown->grown.size, size_max = grown->grown.size_max;

        if (!params || growth->asked == 0)
                return "it sent GROWN without a GROW";
        if (size < params->size)
                return "it sent GROWN with a smaller size";
        if (size > params->size && size > growth->size)
                return "it grew beyond what it was asked for";
        if (size_max == 0 || !is_size_max_valid(params, size_max))
                return "it sent GROWN with an impossible size";
        growth->asked--;
        return NULL;
}
