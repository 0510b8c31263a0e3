/* SPDX-License-Identifier: MIT */
/* What is written of claims is read back, and nothing else is taken for some. */
#include "tests/unit/check.h"
#include "ublkd/runtime/claim_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct runtime_dir *dir;

static const char uid[] = "0b7a1c9e-0000-4000-8000-1234567890ab";

static struct backing_claim items[] = {
        {.key = (char *)"file:8:1:4711", .start = 512, .end = UINT64_MAX, .writes = true},
        {.key = (char *)"disk:8:16", .end = 1, .mapped = true},
        {.key = (char *)"disk:8:16", .end = 1},
};

static void test_round_trip(void)
{
        const struct backing_claims claims = {items, ARRAY_SIZE(items)};
        _cleanup_claims_ struct backing_claims got = {};

        CHECK_INT(claim_file_read(dir, uid, &got), -ENOENT);
        CHECK_INT(claim_file_remove(dir, uid), 0);
        CHECK_INT(claim_file_write(dir, uid, &claims), 0);
        CHECK_INT(claim_file_write(dir, uid, &claims), 0);
        CHECK_INT(claim_file_read(dir, uid, &got), 0);
        CHECK(backing_claims_equal(&got, &claims));
        CHECK_INT(claim_file_remove(dir, uid), 0);
        backing_claims_clear(&got);
        CHECK_INT(claim_file_read(dir, uid, &got), -ENOENT);
}

/* A disk without a store, which is not the same as a disk of which nothing is known. */
static void test_none(void)
{
        _cleanup_claims_ struct backing_claims got = {};

        CHECK_INT(claim_file_write(dir, uid, &(struct backing_claims){}), 0);
        CHECK_INT(claim_file_read(dir, uid, &got), 0);
        CHECK_INT(got.count, 0);
        CHECK_INT(claim_file_remove(dir, uid), 0);
}

static void put_text(const char *directory, const char *text)
{
        char path[256];
        int fd;

        snprintf(path, sizeof(path), "%s/workers/%s.claim", directory, uid);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
        close(fd);
}

/* The longest list there may be. */
static void test_longest(void)
{
        _cleanup_claims_ struct backing_claims claims = {}, got = {};
        char key[BACKING_KEY_MAX + 1];

        memset(key, 'k', BACKING_KEY_MAX);
        key[BACKING_KEY_MAX] = '\0';
        for (uint64_t i = 0; i < BACKING_CLAIMS_MAX; i++)
                CHECK_INT(backing_claims_add(&claims,
                                  &(struct backing_claim){key, UINT64_MAX - i, UINT64_MAX, true, true}),
                        0);
        CHECK_INT(claim_file_write(dir, uid, &claims), 0);
        CHECK_INT(claim_file_read(dir, uid, &got), 0);
        CHECK(backing_claims_equal(&got, &claims));
}

/* An older ublkd wrote one claim. */
static void test_older_file(const char *directory)
{
        _cleanup_claims_ struct backing_claims got = {};

        put_text(directory, "512 18446744073709551615 1\nfile:8:1:4711\n");
        CHECK_INT(claim_file_read(dir, uid, &got), 0);
        CHECK(backing_claims_equal(&got, &(struct backing_claims){items, 1}));
}

static void test_nonsense(const char *directory)
{
        static const char *const texts[] = {"", "\n", "none", "none\n1 2 1\nkey\n", "1 2 1", "1 2 1\n",
                "1 2 1\n\n", "1 2\nkey\n", "1 2 1\nkey", "1 2 1\nkey\nmore\n", "1 2 1 key\n", "a b c\nkey\n",
                "1 2 1 1 1\nkey\n", "1 2 1\nkey\n1 2 1\n", "1 2 1\nkey\n\n", "1 2 1 x\nkey\n"};
        _cleanup_claims_ struct backing_claims got = {};

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                put_text(directory, texts[i]);
                if (!CHECK_INT(claim_file_read(dir, uid, &got), -EBADMSG))
                        fprintf(stderr, "    for \"%s\"\n", texts[i]);
        }
        CHECK_INT(got.count, 0);
}

int main(void)
{
        char directory[] = "/tmp/claim-file-XXXXXX", command[64];
        struct problem_list problems = {};

        CHECK(mkdtemp(directory));
        if (!CHECK_INT(runtime_dir_open(directory, &dir, &problems), 0))
                return check_report();
        test_round_trip();
        test_none();
        test_longest();
        test_older_file(directory);
        test_nonsense(directory);
        dir = runtime_dir_free(dir);
        snprintf(command, sizeof(command), "rm -r %s", directory);
        CHECK_INT(system(command), 0);
        return check_report();
}
