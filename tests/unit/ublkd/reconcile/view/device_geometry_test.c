/* SPDX-License-Identifier: MIT */
/* device_geometry: the wanted size, and whether a worker fits a disk. */
#include "ublkd/reconcile/view/device_geometry.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"

#include <errno.h>

static const struct {
        uint64_t spec, size_max, wanted;
} wishes[] = {
        {4096, 8192,       4096},
        {0,    8192,       8192},
        {0,    UINT64_MAX, 0   }, /* a target without an end */
        {4096, 0,          0   }, /* an older worker */
};

static const struct {
        struct device_geometry disk;
        uint64_t size;
        uint32_t block_size;
        int result;
} fits[] = {
        {{.size = 8192, .block_size = 512}, 8192, 512,  0      },
        {{.size = 8192, .block_size = 512}, 4096, 512,  -ESTALE},
        {{.size = 8192, .block_size = 512}, 8192, 4096, -ESTALE},
        {{.error = -ENOENT},                8192, 512,  -ENOENT},
};

/* When the size is read again. */
static const struct {
        enum plan_kernel kernel;
        enum plan_worker worker;
        bool may_grow, matters;
} looks[] = {
        {KERNEL_DOWN, PLAN_WORKER_NONE,     false, true },
        {KERNEL_DOWN, PLAN_WORKER_STARTING, true,  false},
        {KERNEL_DOWN, PLAN_WORKER_PARAMS,   false, false}, /* of a recovery: it was read for this worker */
        {KERNEL_DOWN, PLAN_WORKER_PARAMS,   true,  true }, /* but it may have grown since */
        {KERNEL_LIVE, PLAN_WORKER_PARAMS,   false, true },
        {KERNEL_DOWN, PLAN_WORKER_READY,    true,  false},
        {KERNEL_LIVE, PLAN_WORKER_SERVING,  false, true },
};

int main(void)
{
        for (size_t i = 0; i < ARRAY_SIZE(looks); i++) {
                struct plan_facts facts = {.kernel = looks[i].kernel, .worker = looks[i].worker};

                CHECK_INT(device_geometry_matters(&facts, looks[i].may_grow), looks[i].matters);
        }
        for (size_t i = 0; i < ARRAY_SIZE(wishes); i++)
                CHECK_INT(device_geometry_wanted(wishes[i].spec,
                                  &(const struct disk_params){.size_max = wishes[i].size_max}),
                        wishes[i].wanted);
        CHECK_INT(device_geometry_wanted(4096, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(fits); i++)
                CHECK_INT(device_geometry_check(
                                  &fits[i].disk, &(const struct disk_params){.size = fits[i].size,
                                                         .logical_block_size = fits[i].block_size}),
                        fits[i].result);
        return check_report();
}
