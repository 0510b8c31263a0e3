/* SPDX-License-Identifier: MIT */
/* Which devices collide on one backing store, against a look at every one, and how many claims a search looks
 * at. */
#include "tests/unit/check.h"
#include "ublkd/plan/claims.h"

#include <stdio.h>

enum { SEED = 20260101, DISKS = 60, ROUNDS = 20000, FEW = 100, MANY = 10000 };

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

static struct held_claims *hold(struct claim_index *index, const struct backing_claims *claims, void *owner)
{
        struct held_claims *held = held_claims_new(claims, owner);

        if (!held)
                abort();
        claim_index_add(index, held);
        return held;
}

static void *collide(const struct claim_index *index, const struct backing_claims *claims, const void *self)
{
        size_t looks;

        return claim_index_collide(index, claims, self, &looks);
}

static void check_pair(const struct backing_claim *one, const struct backing_claim *other, bool collides)
{
        struct backing_claim first = *one, second = *other;
        const struct backing_claims there = {&first, 1}, comes = {&second, 1};
        struct claim_index index;
        struct held_claims *held;
        int owner, self;

        claim_index_init(&index);
        held = hold(&index, &there, &owner);
        CHECK(collide(&index, &comes, &self) == (collides ? &owner : NULL));
        CHECK(!collide(&index, &comes, &owner)); /* never with itself */
        held_claims_free(held);
        CHECK(!collide(&index, &comes, &self));
}

/* Any of one list with any of the other. */
static void test_lists(void)
{
        struct backing_claim disks[] = {
                {(char *)"disk:253:0", 0, 100,        true, false},
                {(char *)"disk:8:16",  0, UINT64_MAX, true, true },
                {(char *)"disk:8:32",  0, UINT64_MAX, true, true },
        };
        struct backing_claim slave = {(char *)"disk:8:32", 0, 100, true, false};
        struct backing_claim sibling[] = {
                {(char *)"disk:253:1", 0, 100, true, false},
                disks[1]
        };
        const struct backing_claims volume = {disks, 3}, disk = {&slave, 1}, empty = {},
                                    other_volume = {sibling, 2};
        struct held_claims *held[3];
        struct claim_index index;

        claim_index_init(&index);
        held[0] = hold(&index, &empty, (void *)(uintptr_t)&empty);
        held[1] = hold(&index, &other_volume, (void *)(uintptr_t)&other_volume);
        CHECK(!collide(&index, &disk, &disk));
        CHECK(!collide(&index, &volume, &volume));
        held[2] = hold(&index, &disk, (void *)(uintptr_t)&disk);
        CHECK(collide(&index, &volume, &volume) == &disk);
        CHECK(!collide(&index, &empty, &volume));
        for (size_t i = 0; i < ARRAY_SIZE(held); i++)
                held_claims_free(held[i]);
        held_claims_free(held_claims_new(&disk, NULL)); /* one that was in no index */
}

/* ---- against a look at every one ---- */

struct disk {
        struct backing_claims claims;
        struct held_claims *held; /* NULL: it claims nothing */
};

static void claim_something(struct claim_index *index, struct disk *disk)
{
        static const char *const keys[] = {"disk:8:0", "disk:8:16", "file:8:1:4711"};

        disk->held = held_claims_free(disk->held);
        backing_claims_clear(&disk->claims);
        for (int i = rand() % 5; i > 0; i--) {
                uint64_t start = (uint64_t)rand() % 1000, length = (uint64_t)rand() % (rand() % 4 ? 20 : 500);

                CHECK_INT(backing_claims_add(&disk->claims,
                                  &(struct backing_claim){
                                          .key = (char *)(uintptr_t)keys[rand() % 3],
                                          .start = start,
                                          .end = start + length,
                                          .writes = rand() % 5 == 0,
                                          .mapped = rand() % 3 == 0,
                                  }),
                        0);
        }
        disk->held = hold(index, &disk->claims, disk);
}

static bool collides_with_any(const struct disk *disks, const struct disk *self)
{
        for (size_t i = 0; i < DISKS; i++)
                if (&disks[i] != self && disks[i].held
                        && backing_claims_collide(&self->claims, &disks[i].claims))
                        return true;
        return false;
}

static void test_random_claims(void)
{
        struct disk disks[DISKS] = {};
        struct claim_index index;
        unsigned collisions = 0;

        srand(SEED);
        claim_index_init(&index);
        for (unsigned round = 0; round < ROUNDS; round++) {
                struct disk *disk = &disks[rand() % DISKS];
                const struct disk *holder;
                bool wanted;

                claim_something(&index, disk);
                holder = collide(&index, &disk->claims, disk);
                wanted = collides_with_any(disks, disk);
                collisions += wanted;
                CHECK(wanted == (holder != NULL));
                if (holder && CHECK(holder != disk && holder->held))
                        CHECK(backing_claims_collide(&disk->claims, &holder->claims));
                if (rand() % 2)
                        disk->held = held_claims_free(disk->held);
        }
        CHECK(collisions > ROUNDS / 10 && collisions < ROUNDS / 10 * 9);
        for (size_t i = 0; i < DISKS; i++) {
                held_claims_free(disks[i].held);
                backing_claims_clear(&disks[i].claims);
        }
        CHECK_INT(index.claims.count, 0);
}

/* ---- the work ---- */

enum layout { SLICES_OF_ONE_FILE, FILE_EACH, READERS_OF_ONE_FILE, VOLUMES_OF_ONE_DISK, _LAYOUT_MAX };

static struct backing_claim claim_of(enum layout layout, int i, char key[static 32])
{
        struct backing_claim claim = {.key = key, .end = 1 << 20, .writes = layout != READERS_OF_ONE_FILE};

        snprintf(key, 32, layout == FILE_EACH ? "file:8:1:%d" : "file:8:1:4711", i);
        if (layout == SLICES_OF_ONE_FILE) {
                claim.start = (uint64_t)i << 20;
                claim.end = (uint64_t)(i + 1) << 20;
        }
        claim.mapped = layout == VOLUMES_OF_ONE_DISK;
        return claim;
}

/* The most claims that a search of one more disk looks at beside `count` that do not collide. */
static size_t most_looks(enum layout layout, int count)
{
        struct disk *disks = calloc((size_t)count, sizeof(*disks));
        struct claim_index index;
        size_t looks, most = 0;
        char key[32];

        if (!disks)
                abort();
        claim_index_init(&index);
        for (int i = 0; i < count; i++) {
                struct backing_claim claim = claim_of(layout, i, key);

                CHECK_INT(backing_claims_add(&disks[i].claims, &claim), 0);
                CHECK(!claim_index_collide(&index, &disks[i].claims, &disks[i], &looks));
                most = looks > most ? looks : most;
                disks[i].held = hold(&index, &disks[i].claims, &disks[i]);
                CHECK(!claim_index_collide(&index, &disks[i].claims, &disks[i], &looks)); /* it extends it */
                most = looks > most ? looks : most;
        }
        for (int i = 0; i < count; i++) {
                held_claims_free(disks[i].held);
                backing_claims_clear(&disks[i].claims);
        }
        free(disks);
        return most;
}

static void test_the_work_grows_with_the_logarithm(void)
{
        for (enum layout layout = 0; layout < _LAYOUT_MAX; layout++) {
                size_t few = most_looks(layout, FEW), many = most_looks(layout, MANY);

                if (!CHECK(many <= 2 * few + 8))
                        fprintf(stderr, "layout %d: %zu looks at %d, %zu at %d\n", (int)layout, few, FEW,
                                many, MANY);
        }
}

int main(void)
{
        for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
                check_pair(&pairs[i].one, &pairs[i].other, pairs[i].collides);
                check_pair(&pairs[i].other, &pairs[i].one, pairs[i].collides);
        }
        test_lists();
        test_random_claims();
        test_the_work_grows_with_the_logarithm();
        return check_report();
}
