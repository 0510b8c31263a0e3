/* SPDX-License-Identifier: MIT */
/* Who collides with whom on one backing store. */
#include "tests/unit/check.h"
#include "ublkd/plan/claims.h"

static char one_file[] = "file:8:1:4711", other_file[] = "file:8:1:4712";

struct pair {
        struct backing_claim one, other;
        bool collides;
};

static const struct pair pairs[] = {
        {{one_file, 0, 100, true, false},  {one_file, 0, 100, true, false},        true },
        {{one_file, 0, 100, true, false},  {one_file, 0, 100, false, false},       true },
        {{one_file, 0, 100, false, false}, {one_file, 0, 100, false, false},       false},
        {{one_file, 0, 100, true, false},  {other_file, 0, 100, true, false},      false},
        {{one_file, 0, 100, true, false},  {one_file, 100, 200, true, false},      false},
        {{one_file, 0, 101, true, false},  {one_file, 100, 200, true, false},      true },
        {{one_file, 50, 60, false, false}, {one_file, 0, UINT64_MAX, true, false}, true },
        {{one_file, 50, 50, true, false},  {one_file, 0, 100, true, false},        false},
        {{one_file, 0, 100, true, true},   {one_file, 0, 100, true, false},        true },
        {{one_file, 0, 100, false, true},  {one_file, 50, 51, true, false},        true },
        {{one_file, 0, 100, true, true},   {one_file, 100, 101, true, false},      false},
        {{one_file, 0, 100, true, true},   {one_file, 0, 100, true, true},         false},
};

/* Any of one list with any of the other; of several lists the first. */
static void test_lists(void)
{
        struct backing_claim disks[] = {
                {(char *)"disk:253:0", 0, 100,        true, false},
                {(char *)"disk:8:16",  0, UINT64_MAX, true, true },
                {(char *)"disk:8:32",  0, UINT64_MAX, true, true },
        };
        struct backing_claim slave = {(char *)"disk:8:32", 0, 100, true, false};
        struct backing_claim sibling = {(char *)"disk:253:1", 0, 100, true, false};
        const struct backing_claims volume =
                                            {
                                                    disks, 3
        },
                                    disk = {&slave, 1}, empty = {},
                                    other_volume = {(struct backing_claim[]){sibling, disks[1]}, 2};
        const struct backing_claims *others[] = {NULL, &empty, &other_volume, &disk, &volume};

        CHECK_INT(claims_collide(&volume, others, 5), 3);
        CHECK_INT(claims_collide(&disk, others, 3), -1);
        CHECK_INT(claims_collide(&disk, (const struct backing_claims *[]){&volume}, 1), 0);
        CHECK_INT(claims_collide(&empty, others, 5), -1);
        CHECK_INT(claims_collide(&volume, NULL, 0), -1);
}

int main(void)
{
        for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
                struct backing_claim one = pairs[i].one, other = pairs[i].other;
                const struct backing_claims list = {&one, 1}, others = {&other, 1};
                const struct backing_claims *lists = &list, *other_lists = &others;

                CHECK_INT(claims_collide(&list, &other_lists, 1), pairs[i].collides ? 0 : -1);
                CHECK_INT(claims_collide(&others, &lists, 1), pairs[i].collides ? 0 : -1);
        }
        test_lists();
        return check_report();
}
