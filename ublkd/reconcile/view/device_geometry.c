/* SPDX-License-Identifier: MIT */
/* The size of a device's disk in one turn. */
#include "ublkd/reconcile/view/device_geometry.h"

#include <errno.h>

/* A spec without a size means the size of the backing store when the worker read it last; an older worker does not
 * report it. */
bool device_geometry_matters(const struct plan_facts *facts, bool may_grow)
{
        switch (facts->worker) {
        case PLAN_WORKER_STARTING:
        case PLAN_WORKER_FETCHING:
        case PLAN_WORKER_READY:
                return false;
        case PLAN_WORKER_PARAMS:
                return facts->kernel != KERNEL_DOWN || may_grow;
        default:
                return true;
        }
}

uint64_t device_geometry_wanted(uint64_t spec_size, const struct disk_params *params)
{
        if (!params || params->size_max == 0)
                return 0;
        if (spec_size > 0)
                return spec_size;
        return params->size_max == UINT64_MAX ? 0 : params->size_max;
}

int device_geometry_check(const struct device_geometry *geometry, const struct disk_params *params)
{
        if (geometry->error < 0)
                return geometry->error;
        return params->size == geometry->size && params->logical_block_size == geometry->block_size ? 0
                                                                                                    : -ESTALE;
}
