/* SPDX-License-Identifier: MIT */
/* Which way the bytes of a disk go, and why. The measurements behind it are in bench/RESULTS.md. */
#include "ublkd/driver/device_route.h"

#include "ublkd/base/cleanup.h"

/* What was fastest on a generation of the driver, which is known by what it can do. */
struct generation {
        bool registers, batches; /* it registers the pages of a request (auto_buffers); it takes batches */
        bool zero_copy;          /* for a store that takes such pages; any other one gets copies */
        unsigned batches_from;   /* from this queue depth on; 0: never */
};

/* The newest first; that of a disk is the first one all of which it can have. */
static const struct generation generations[] = {
        /* Linux 7.0. Measured on 7.3.4: "beside the peers on Linux 7.3.4" of 2026-11-29. Batches: requests that come one
         * by one cost some 3 % more through them, and 64 that come by sixteens 5 % less. */
        {.registers = true, .batches = true, .zero_copy = true, .batches_from = 4},
        /* The same for an unprivileged disk, which can have no zero copy. */
        {.batches = true, .batches_from = 4},
        /* Linux 6.16, of which no measurement is there: as above. */
        {.registers = true, .zero_copy = true},
        /* Before. Measured on 6.12.95: "the data paths on Linux 6.12" of 2026-11-29. Zero copy without registration by the
         * driver costs each request two commands more than it saves: kublk's "zero-copy" beside its "copy". */
        {.zero_copy = false},
};

static const struct generation *generation_of(uint64_t features)
{
        struct data_route can = ublk_ctl_route(features);
        size_t i = 0;

        while (i + 1 < ARRAY_SIZE(generations)
                && ((generations[i].registers && !can.auto_buffers)
                        || (generations[i].batches && !can.batch)))
                i++;
        return &generations[i];
}

static enum data_path choose_path(enum data_path wanted, enum data_path fastest, uint64_t features)
{
        if (wanted != DATA_PATH_AUTO)
                return wanted;
        if (fastest == DATA_PATH_AUTO
                || (fastest == DATA_PATH_ZERO_COPY && !generation_of(features)->zero_copy))
                return DATA_PATH_COPY;
        return ublk_ctl_missing(ublk_ctl_path_flags(fastest), features) ? DATA_PATH_COPY : fastest;
}

static bool choose_batch(unsigned queue_depth, uint64_t features)
{
        unsigned from = generation_of(features)->batches_from;

        return from > 0 && queue_depth >= from;
}

struct data_route device_route_choose(const struct data_route_wish *wish, uint64_t features)
{
        enum data_path path = choose_path(wish->path, wish->fastest, features);

        return (struct data_route){
                .path = path,
                .auto_buffers = path == DATA_PATH_ZERO_COPY && ublk_ctl_route(features).auto_buffers,
                .batch = wish->may_batch && choose_batch(wish->queue_depth, features),
        };
}

const char *device_route_reason(enum data_path wanted, enum data_path fastest, const struct data_route *route)
{
        static const char *const chosen[_DATA_PATH_MAX] = {
                [DATA_PATH_COPY] =
                        "Chosen by \"auto\": one copy by the driver is the fastest for this target and "
                        "backing store.",
                [DATA_PATH_ZERO_COPY] =
                        "Chosen by \"auto\": this backing store takes the pages of a request as "
                        "they are.",
        };

        if (wanted != DATA_PATH_AUTO)
                return "The spec asks for it.";
        if (fastest != DATA_PATH_AUTO && fastest != route->path)
                return "Chosen by \"auto\": another path would be faster for this backing store, but this "
                       "kernel did not have all that it needs when the disk was made.";
        return chosen[route->path];
}
