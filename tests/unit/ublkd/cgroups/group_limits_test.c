/* SPDX-License-Identifier: MIT */
/* Limits as the kernel writes them. */
#include "ublkd/cgroups/group_limits.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <sys/sysmacros.h>

static void check_text(const struct group_limits *limits, enum group_limit which, const char *wanted)
{
        char text[GROUP_LIMIT_TEXT_SIZE] = "";

        CHECK_INT(group_limit_text(limits, which, text), 0);
        CHECK_STR(text, wanted);
}

int main(void)
{
        struct group_limits none =
                                    {
        },
                            all = {.cpu_weight = 50,
                                    .memory_max = UINT64_C(1) << 40,
                                    .pids_max = 64,
                                    .io = {.read_bytes = UINT64_MAX, .write_ios = 7},
                                    .disk = makedev(259, 1048575)};
        char text[GROUP_LIMIT_TEXT_SIZE];

        for (unsigned i = 0; i < _GROUP_LIMIT_MAX; i++) {
                CHECK(!group_limit_is_set(&none, (enum group_limit)i));
                CHECK(group_limit_is_set(&all, (enum group_limit)i));
                CHECK(group_limit_file((enum group_limit)i) && group_limit_controller((enum group_limit)i)
                        && group_limit_field((enum group_limit)i));
        }
        CHECK(group_limits_any(&all) && !group_limits_any(&none));
        CHECK(!group_limits_any(&(struct group_limits){.disk = 5}));
        CHECK(group_limits_equal(&all, &all) && !group_limits_equal(&all, &none));
        check_text(&all, GROUP_CPU_WEIGHT, "50");
        check_text(&all, GROUP_MEMORY_MAX, "1099511627776");
        check_text(&all, GROUP_PIDS_MAX, "64");
        check_text(&all, GROUP_IO_MAX, "259:1048575 rbps=18446744073709551615 wbps=max riops=max wiops=7");
        check_text(&none, GROUP_CPU_WEIGHT, "100");
        check_text(&none, GROUP_MEMORY_MAX, "max");
        check_text(&none, GROUP_PIDS_MAX, "max");
        CHECK_INT(group_limit_text(&none, GROUP_IO_MAX, text), -ENODEV);
        all.disk = 0;
        CHECK_INT(group_limit_text(&all, GROUP_IO_MAX, text), -ENODEV);
        group_io_none_text(makedev(8, 16), text);
        CHECK_STR(text, "8:16 rbps=max wbps=max riops=max wiops=max");
        return check_report();
}
