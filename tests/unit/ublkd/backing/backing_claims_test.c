/* SPDX-License-Identifier: MIT */
/* A list of claims: what it takes, how it grows, and what its copies are. */
#include "ublkd/backing/backing_claims.h"

#include "tests/unit/check.h"

#include <stdio.h>
#include <string.h>

static struct backing_claim claim_of(const char *key, uint64_t start)
{
        return (struct backing_claim){.key = (char *)(uintptr_t)key, .start = start, .writes = true};
}

static void test_add(void)
{
        _cleanup_claims_ struct backing_claims claims = {};
        struct backing_claim claim = claim_of("disk:8:16", 0);

        CHECK_INT(backing_claims_add(&claims, &claim), 0);
        CHECK_INT(backing_claims_add(&claims, &claim), 0); /* what is there already */
        CHECK_INT(claims.count, 1);
        CHECK(claims.items[0].key != claim.key);
        claim.mapped = true;
        CHECK_INT(backing_claims_add(&claims, &claim), 0);
        CHECK_INT(claims.count, 2);
}

static void test_invalid_keys(void)
{
        static const char *const keys[] = {"", "two words", "two\nlines", "\x7f", "\xc3\xa4"};
        _cleanup_claims_ struct backing_claims claims = {};
        char longest[BACKING_KEY_MAX + 2];
        struct backing_claim claim;

        for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                claim = claim_of(keys[i], 0);
                CHECK_INT(backing_claims_add(&claims, &claim), -EINVAL);
        }
        CHECK_INT(backing_claims_add(&claims, &(struct backing_claim){}), -EINVAL);
        memset(longest, 'x', sizeof(longest));
        longest[BACKING_KEY_MAX + 1] = '\0';
        claim = claim_of(longest, 0);
        CHECK_INT(backing_claims_add(&claims, &claim), -EINVAL);
        longest[BACKING_KEY_MAX] = '\0';
        CHECK_INT(backing_claims_add(&claims, &claim), 0);
        CHECK_INT(claims.count, 1);
}

static void test_limit(void)
{
        _cleanup_claims_ struct backing_claims claims = {}, copy = {};

        for (unsigned i = 0; i <= BACKING_CLAIMS_MAX; i++) {
                struct backing_claim claim = claim_of("file:8:1:4711", i);

                CHECK_INT(backing_claims_add(&claims, &claim), i < BACKING_CLAIMS_MAX ? 0 : -E2BIG);
        }
        CHECK_INT(backing_claims_append(&copy, &claims), 0);
        CHECK(backing_claims_equal(&copy, &claims));
        copy.items[BACKING_CLAIMS_MAX - 1].start++;
        CHECK(!backing_claims_equal(&copy, &claims));
}

static void test_resize(void)
{
        _cleanup_claims_ struct backing_claims claims = {};
        struct backing_claim plain = claim_of("file:8:1:4711", 4096),
                             high = claim_of("disk:8:0", UINT64_MAX - 5),
                             mapped = {.key = (char *)"disk:8:16", .end = 1 << 20, .mapped = true};

        CHECK_INT(backing_claims_add(&claims, &plain), 0);
        CHECK_INT(backing_claims_add(&claims, &high), 0);
        CHECK_INT(backing_claims_add(&claims, &mapped), 0);
        backing_claims_resize(&claims, 8192);
        CHECK(claims.items[0].start == 4096 && claims.items[0].end == 4096 + 8192);
        CHECK(claims.items[1].end
                == UINT64_MAX); /* never around to an empty range, which collides with none */
        CHECK(claims.items[2].end == 1 << 20);
        backing_claims_resize(&claims, UINT64_MAX);
        CHECK(claims.items[0].end == UINT64_MAX);
}

static void test_device_of_a_key(void)
{
        unsigned major = 1, minor = 1;

        CHECK(backing_key_device("disk:8:16", &major, &minor) && major == 8 && minor == 16);
        CHECK(backing_key_device("file:259:3:4711", &major, &minor) && major == 259 && minor == 3);
        CHECK(!backing_key_device("file:0:45:257", &major, &minor)); /* tmpfs, btrfs, a network */
        CHECK(!backing_key_device("file:8:1", &major, &minor));
        CHECK(!backing_key_device("disk:8", &major, &minor));
        CHECK(!backing_key_device("rbd:8:16", &major, &minor));
        CHECK(major == 259 && minor == 3);
}

int main(void)
{
        test_add();
        test_device_of_a_key();
        test_invalid_keys();
        test_limit();
        test_resize();
        return check_report();
}
