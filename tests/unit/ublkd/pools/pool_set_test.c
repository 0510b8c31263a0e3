/* SPDX-License-Identifier: MIT */
/* Pools are found by their names. */
#include "ublkd/pools/pool_set.h"

#include "tests/unit/check.h"

#include <errno.h>

int main(void)
{
        _cleanup_pool_set_ struct pool_set set = {};

        CHECK(!pool_set_find(NULL, "fast"));
        CHECK(!pool_set_find(&set, "fast"));
        CHECK_INT(pool_set_add(&set, "fast", "/srv/fast"), 0);
        CHECK_INT(pool_set_add(&set, "slow", "/srv/slow"), 0);
        CHECK_INT(pool_set_add(&set, "fast", "/srv/other"), -EEXIST);
        CHECK_STR(pool_set_find(&set, "fast")->directory, "/srv/fast");
        CHECK_STR(pool_set_find(&set, "slow")->directory, "/srv/slow");
        CHECK(!pool_set_find(&set, "fas"));
        pool_set_clear(&set);
        CHECK_INT(set.count, 0);
        CHECK(!pool_set_find(&set, "fast"));
        return check_report();
}
