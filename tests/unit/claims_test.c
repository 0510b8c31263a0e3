/* Who collides with whom on one backing store. */
#include "check.h"
#include "ublkd/claims.h"

static char one_file[] = "file:8:1:4711", other_file[] = "file:8:1:4712";

struct pair {
        struct backing_claim one, other;
        bool collides;
};

static const struct pair pairs[] = {
        {{one_file, 0, 100, true},  {one_file, 0, 100, true},        true },
        {{one_file, 0, 100, true},  {one_file, 0, 100, false},       true },
        {{one_file, 0, 100, false}, {one_file, 0, 100, false},       false},
        {{one_file, 0, 100, true},  {other_file, 0, 100, true},      false},
        {{one_file, 0, 100, true},  {one_file, 100, 200, true},      false},
        {{one_file, 0, 101, true},  {one_file, 100, 200, true},      true },
        {{one_file, 50, 60, false}, {one_file, 0, UINT64_MAX, true}, true },
        {{one_file, 50, 50, true},  {one_file, 0, 100, true},        false},
        {{NULL, 0, 100, true},      {NULL, 0, 100, true},            false},
        {{NULL, 0, 100, true},      {one_file, 0, 100, true},        false},
};

int main(void)
{
        const struct backing_claim *others[] = {NULL, &pairs[3].other, &pairs[0].other, &pairs[1].other};

        for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
                const struct backing_claim *one = &pairs[i].one, *other = &pairs[i].other;

                CHECK_INT(claims_collide(one, &other, 1), pairs[i].collides ? 0 : -1);
                CHECK_INT(claims_collide(other, &one, 1), pairs[i].collides ? 0 : -1);
        }
        CHECK_INT(claims_collide(&pairs[0].one, others, 4),
                2); /* the first, and over those that have no claim */
        CHECK_INT(claims_collide(&pairs[0].one, others, 2), -1);
        CHECK_INT(claims_collide(&pairs[0].one, NULL, 0), -1);
        return check_report();
}
