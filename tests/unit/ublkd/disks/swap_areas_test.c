/* SPDX-License-Identifier: MIT */
/* swap_areas: which disks hold swap, from a list as the kernel writes it and a tree like /sys. */
#include "ublkd/disks/swap_areas.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"

#include <stdlib.h>
#include <sys/stat.h>

enum { FOUND_MAX = 8 };

static char sys[] = "/tmp/swap-areas-XXXXXX";

struct seen {
        int numbers[FOUND_MAX];
        int count;
};

static void on_found(void *userdata, int number)
{
        struct seen *seen = userdata;

        CHECK(seen->count < FOUND_MAX);
        if (seen->count < FOUND_MAX)
                seen->numbers[seen->count++] = number;
}

#define HEADER "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"

static const struct {
        const char *swaps;
        int count, numbers[FOUND_MAX];
} rows[] = {
        {HEADER,                                                                          0, {}    },
        {"",                                                                              0, {}    }, /* a list without its header */
        {HEADER "/dev/ublkb3                             partition\t524284\t\t0\t\t-2\n", 1, {3}   },
        {HEADER "/dev/ublkb12p2                          partition\t524284\t\t0\t\t-2\n", 1, {12}  },
        {HEADER "/dev/sda2                               partition\t524284\t\t0\t\t-2\n", 0, {}    },
        {HEADER "/dev/sda2 partition\t4\t0\t-2\n/dev/ublkb0 partition\t4\t0\t-3\n/dev/ublkb1 "
                "partition\t4\t0\t-4\n",                                         2, {0, 1}},
        {HEADER "/dev/ublkb3\\040(deleted) partition\t4\t0\t-2\n",                        0, {}    },
        {HEADER "/srv/ublkb3 file\t4\t0\t-2\n",                                           0, {}    }, /* a file that has the name of a disk */
        {HEADER "/dev/dm-0 partition\t4\t0\t-2\n",                                        1, {5}   },
        {HEADER "/dev/dm-1 partition\t4\t0\t-2\n",                                        1, {5}   }, /* LUKS on LVM */
        {HEADER "/dev/dm-9 partition\t4\t0\t-2\n",                                        0, {}    }, /* gone */
        {HEADER "/dev/dm-7 partition\t4\t0\t-2\n",                                        0, {}    }, /* upon itself, which the kernel never shows */
        {HEADER "/dev/ublkb3",                                                            0, {}    }, /* a line that is cut off */
};

static void make(const char *path)
{
        char whole[128];

        snprintf(whole, sizeof(whole), "%s/%s", sys, path);
        CHECK_INT(mkdir(whole, 0700), 0);
}

static void make_tree(void)
{
        static const char *const directories[] = {"class", "class/block", "class/block/dm-0",
                "class/block/dm-0/slaves", "class/block/dm-0/slaves/ublkb5p1", "class/block/dm-1",
                "class/block/dm-1/slaves", "class/block/dm-1/slaves/dm-0", "class/block/dm-7",
                "class/block/dm-7/slaves", "class/block/dm-7/slaves/dm-7"};

        CHECK(mkdtemp(sys));
        for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
                make(directories[i]);
}

static void check(size_t i)
{
        _cleanup_fclose_ FILE *swaps = tmpfile();
        struct seen seen = {};

        CHECK(swaps && fputs(rows[i].swaps, swaps) >= 0);
        rewind(swaps);
        CHECK_INT(swap_areas_read(swaps, sys, on_found, &seen), 0);
        CHECK_INT(seen.count, rows[i].count);
        for (int j = 0; j < seen.count; j++)
                CHECK_INT(seen.numbers[j], rows[i].numbers[j]);
}

/* What cannot be read is not an empty list. */
static void check_unreadable(void)
{
        _cleanup_fclose_ FILE *directory = fopen(sys, "re");
        struct seen seen = {};

        CHECK(directory);
        CHECK_INT(swap_areas_read(directory, sys, on_found, &seen), -EISDIR);
        CHECK_INT(seen.count, 0);
}

int main(void)
{
        char command[96];

        make_tree();
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                check(i);
        check_unreadable();
        snprintf(command, sizeof(command), "rm -r %s", sys);
        CHECK_INT(system(command), 0);
        return check_report();
}
