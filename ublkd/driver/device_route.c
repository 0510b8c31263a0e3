/* SPDX-License-Identifier: MIT */
/* Which way the bytes of a disk go, and why. The measurements behind it are in bench/RESULTS.md. */
#include "ublkd/driver/device_route.h"

static bool kernel_has(enum data_path path, uint64_t features)
{
        return !ublk_ctl_missing(ublk_ctl_path_flags(path), features);
}

static enum data_path choose_path(enum data_path wanted, enum data_path fastest, uint64_t features)
{
        if (wanted != DATA_PATH_AUTO)
                return wanted;
        /* Without registration by the driver every request costs two commands more than it saves: kublk's
         * "zero-copy" beside its "copy". */
        if (fastest == DATA_PATH_ZERO_COPY && !ublk_ctl_route(features).auto_buffers)
                return DATA_PATH_COPY;
        return fastest != DATA_PATH_AUTO && kernel_has(fastest, features) ? fastest : DATA_PATH_COPY;
}

/* One request at a time costs some 3 % more through batches than without, and 64 of them that come by
 * sixteens cost 5 % less. */
bool device_route_batches_pay(unsigned queue_depth)
{
        enum { TOGETHER = 4 };

        return queue_depth >= TOGETHER;
}

struct data_route device_route_choose(
        enum data_path wanted, enum data_path fastest, bool may_batch, uint64_t features)
{
        struct data_route can = ublk_ctl_route(features);
        enum data_path path = choose_path(wanted, fastest, features);

        return (struct data_route){
                .path = path,
                .auto_buffers = path == DATA_PATH_ZERO_COPY && can.auto_buffers,
                .batch = may_batch && can.batch,
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
