/* What is written of a claim is read back, and nothing else is taken for one. */
#include "check.h"
#include "ublkd/claim_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char uid[] = "0b7a1c9e-0000-4000-8000-1234567890ab";

static void test_round_trip(const char *directory)
{
        const struct backing_claim claim = {
                .key = (char *)(uintptr_t) "file:8:1:4711", .start = 512, .end = UINT64_MAX, .writes = true};
        struct backing_claim got = {};

        CHECK_INT(claim_file_read(directory, uid, &got), -ENOENT);
        CHECK_INT(claim_file_remove(directory, uid), 0);
        CHECK_INT(claim_file_write(directory, uid, &claim), 0);
        CHECK_INT(claim_file_write(directory, uid, &claim), 0);
        CHECK_INT(claim_file_read(directory, uid, &got), 0);
        CHECK_STR(got.key, claim.key);
        CHECK(got.start == 512 && got.end == UINT64_MAX && got.writes);
        free(got.key);
        CHECK_INT(claim_file_remove(directory, uid), 0);
        CHECK_INT(claim_file_read(directory, uid, &got), -ENOENT);
}

static void test_nonsense(const char *directory)
{
        static const char *const texts[] = {"", "\n", "1 2 1", "1 2 1\n", "1 2 1\n\n", "1 2\nkey\n",
                "1 2 1\nkey", "1 2 1\nkey\nmore\n", "1 2 1 key\n", "a b c\nkey\n"};
        struct backing_claim got = {};
        char path[256];

        snprintf(path, sizeof(path), "%s/workers/%s.claim", directory, uid);
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

                CHECK(write(fd, texts[i], strlen(texts[i])) == (ssize_t)strlen(texts[i]));
                close(fd);
                if (!CHECK_INT(claim_file_read(directory, uid, &got), -EBADMSG))
                        fprintf(stderr, "    for \"%s\"\n", texts[i]);
        }
}

int main(void)
{
        char directory[] = "/tmp/claim-file-XXXXXX", workers[64], command[64];

        CHECK(mkdtemp(directory));
        CHECK_INT(claim_file_write(directory, uid, &(struct backing_claim){.key = (char *)(uintptr_t) "k"}),
                -ENOENT);
        snprintf(workers, sizeof(workers), "%s/workers", directory);
        CHECK_INT(mkdir(workers, 0700), 0);
        test_round_trip(directory);
        test_nonsense(directory);
        snprintf(command, sizeof(command), "rm -r %s", directory);
        CHECK_INT(system(command), 0);
        return check_report();
}
