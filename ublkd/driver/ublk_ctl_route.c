/* SPDX-License-Identifier: MIT */
/* The flags of a disk that say which way its bytes go. */
#include "ublkd/driver/ublk_ctl.h"
#include "ublkd/kernel/ublk_uapi.h"

uint64_t ublk_ctl_path_flags(enum data_path path)
{
        static const uint64_t flags[_DATA_PATH_MAX] = {
                [DATA_PATH_USER_COPY] = UBLK_F_USER_COPY,
                [DATA_PATH_ZERO_COPY] = UBLK_F_SUPPORT_ZERO_COPY,
        };

        return flags[path];
}

uint64_t ublk_ctl_route_flags(const struct data_route *route)
{
        return ublk_ctl_path_flags(route->path) | (route->auto_buffers ? UBLK_F_AUTO_BUF_REG : 0)
               | (route->batch ? UBLK_F_BATCH_IO : 0);
}

struct data_route ublk_ctl_route(uint64_t flags)
{
        bool zero_copy = flags & UBLK_F_SUPPORT_ZERO_COPY;

        return (struct data_route){
                .path = zero_copy                  ? DATA_PATH_ZERO_COPY
                        : flags & UBLK_F_USER_COPY ? DATA_PATH_USER_COPY
                                                   : DATA_PATH_COPY,
                .auto_buffers = zero_copy && (flags & UBLK_F_AUTO_BUF_REG),
                .batch = flags & UBLK_F_BATCH_IO,
        };
}
