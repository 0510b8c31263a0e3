/* SPDX-License-Identifier: MIT */
/* Children one after another: no two bytes of the disk have the same place, and no block lies in two children. */
#include "targets/linear/linear.h"
#include "targets/linear/linear_map.h"
#include "targets/linear/linear_options.h"
#include "tests/unit/check.h"

#include <errno.h>

enum { CHILDREN = 3 };

static const struct linear_options no_options;

struct list {
        struct target_device children[CHILDREN];
        struct linear_map map;
        struct target_device device;
};

static void list_make(struct list *list, const uint64_t sizes[CHILDREN], uint32_t block_size, bool served)
{
        *list = (struct list){};
        for (unsigned i = 0; i < CHILDREN; i++)
                list->children[i].size = sizes[i];
        list->device = (struct target_device){.config = &no_options,
                .state = &list->map,
                .children = list->children,
                .child_count = CHILDREN,
                .has_list = true,
                .store.served = served,
                .wanted_block_size = block_size};
}

static const struct {
        uint64_t sizes[CHILDREN];
        uint32_t wanted_block_size, block_size;
        const char *pointer, *reason; /* NULL: it opens */
        int result;
        uint64_t size;
        bool served; /* the disk is there, so it has the wanted size */
} cases[] = {
        {{8192, 4096, 512},                         0,    512,  NULL,                 NULL,                 0,       12800,      false},
        {{8192, 4096, 0},                           4096, 512,  NULL,                 NULL,                 0,       0,          false},
        {{8192, 4096, UINT64_MAX},                  4096, 512,  NULL,                 NULL,                 0,       UINT64_MAX, false},
        {{8192, 4608, 4096},                        0,    512,  NULL,                 NULL,                 0,       16896,      false},
        {{8192, 4608, 4096},                        4096, 512,  "/target/children/2", "OffsetNotAMultiple", -EINVAL, 16896,      false},
        {{8192, 4608, 4096},                        4096, 512,  NULL,                 NULL,                 0,       16896,      true },
        {{8192, 4608, 4096},                        512,  4096, NULL,                 NULL,                 0,       16896,      true },
        {{8192, 4608, 4096},                        8192, 4096, "/target/children/2", "OffsetNotAMultiple", -EINVAL, 16896,      true },
        {{512, 7680, 4096},                         0,    4096, "/target/children/1", "OffsetNotAMultiple", -EINVAL, 12288,      false},
        {{8192, 0, 4096},                           0,    512,  "/target/children/1", "SizeMissing",        -EINVAL, 0,          false},
        {{0, 4096, 4096},                           0,    512,  "/target/children/0", "SizeMissing",        -EINVAL, 0,          false},
        {{UINT64_C(1) << 63, UINT64_C(1) << 63, 1}, 0,    512,  "/target/children/2", "TooLarge",           -EFBIG,
         UINT64_MAX,                                                                                                             false},
};

int main(void)
{
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct target_geometry geometry = {.logical_block_size = cases[i].block_size};
                _cleanup_problems_ struct problem_list problems = {};
                struct list list;

                list_make(&list, cases[i].sizes, cases[i].wanted_block_size, cases[i].served);
                CHECK_INT(linear_target.size(&list.device, cases[i].sizes), cases[i].size);
                CHECK_INT(linear_target.open(&list.device, &geometry, &problems), cases[i].result);
                CHECK_INT(problems.count, cases[i].reason != NULL);
                if (cases[i].reason && problems.count > 0) {
                        CHECK_STR(problems.items[0].pointer, cases[i].pointer);
                        CHECK_STR(problems.items[0].reason, cases[i].reason);
                }
                if (!cases[i].reason)
                        CHECK_INT(list.map.starts[2], cases[i].sizes[0] + cases[i].sizes[1]);
        }
        return check_report();
}
