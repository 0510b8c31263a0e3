/* SPDX-License-Identifier: MIT */
/* The targets of this build before the crash judge, with all options that make a difference to it:
 *   crash_targets [--seeds N] [--seconds N] [--draws N] [--seed S] [--case PATTERN]
 * Runs with the seeds S, S + 1, … of each case: N of them, or until the seconds are over, which all cases share. S is
 * UBLKD_TEST_SEED, or drawn. PATTERN: of the shell, for the names of cases; none matches: exit status 2. Exit status 1: there
 * is a finding, which is printed with its seed. */
#include "tests/crash/crash.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"
#include "ublkd/base/clock.h"

#include <fnmatch.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define NSEC UINT64_C(1000000000)

/* `keeping` (tests/kernel/keeping) is linked in the place of null.
 *
 * The worker after the crash reads through the page cache: in memory that is the same. */
static const struct crash_case cases[] = {
        {.name = "loop, buffered",
         .spec = "{\"target\":{\"type\":\"loop\",\"path\":\"@0\",\"directIo\":\"off\"}}",
         .files = 1,
         .file_size = 128 * 1024},
        {.name = "loop, a part of a file",
         .spec = "{\"target\":{\"type\":\"loop\",\"path\":\"@0\",\"offset\":12800},\"size\":65536,"
                        "\"blockSize\":4096}", .files = 1,
         .file_size = 128 * 1024},
        {.name = "loop, direct I/O if there",
         .spec = "{\"target\":{\"type\":\"loop\",\"path\":\"@0\",\"directIo\":\"auto\"},\"blockSize\":"
                        "4096}", .spec_after = "{\"target\":{\"type\":\"loop\",\"path\":\"@0\",\"directIo\":\"off\"},"
                              "\"blockSize\":4096}", .parent = "/var/tmp",
         .files = 1,
         .file_size = 128 * 1024},
        {.name = "loop, plain",
         .spec = "{\"target\":{\"type\":\"loop\",\"path\":\"@0\",\"directIo\":\"off\"}}",
         .parent = "/var/tmp",
         .files = 1,
         .file_size = 128 * 1024,
         .entry = CLIENT_PLAIN},
        {.name = "loop, plain, in memory", /* by system calls */
                .spec = "{\"target\":{\"type\":\"loop\",\"path\":\"@0\"}}",
         .files = 1,
         .file_size = 128 * 1024,
         .entry = CLIENT_PLAIN},
        {.name = "linear over loop, plain",
         .spec = "{\"target\":{\"type\":\"linear\",\"offset\":12800,\"child\":{\"type\":\"loop\","
                        "\"path\":"
                        "\"@0\"}},\"size\":65536,\"blockSize\":512}", .parent = "/var/tmp",
         .files = 1,
         .file_size = 128 * 1024,
         .entry = CLIENT_PLAIN},
        {.name = "loop, plain, 3 queues",
         .spec = "{\"target\":{\"type\":\"loop\",\"path\":\"@0\",\"directIo\":\"off\"}}",
         .parent = "/var/tmp",
         .files = 1,
         .file_size = 128 * 1024,
         .queues = 3,
         .entry = CLIENT_PLAIN},
        {.name = "fault over loop",
         .spec = "{\"target\":{\"type\":\"fault\",\"child\":{\"type\":\"loop\",\"path\":\"@0\"}}}",
         .files = 1,
         .file_size = 128 * 1024},
        {.name = "fault, volatile cache",
         .spec = "{\"target\":{\"type\":\"fault\",\"volatileCache\":true,\"child\":{\"type\":\"loop\","
                        "\"path\":\"@0\"}}}", .files = 1,
         .file_size = 16 * 1024}, /* each read looks through the whole cache for each block */
        {.name = "linear over fault, cache",
         .spec = "{\"target\":{\"type\":\"linear\",\"offset\":4608,\"child\":{\"type\":\"fault\","
                        "\"volatileCache\":true,"
                        "\"child\":{\"type\":\"loop\",\"path\":\"@0\"}}}}", .files = 1,
         .file_size = 16 * 1024},
        {.name = "stripe, one with a cache",
         .spec = "{\"target\":{\"type\":\"stripe\",\"chunk\":4096,\"children\":[{\"type\":\"fault\","
                        "\"volatileCache\":"
                        "true,\"child\":{\"type\":\"loop\",\"path\":\"@0\"}},{\"type\":\"loop\",\"path\":\"@"
                        "1\"}]}}", .files = 2,
         .file_size = 8 * 1024},
        {.name = "keeping",
         .spec = "{\"target\":{\"type\":\"null\"},\"size\":32768}", /* without its report */
                .deaths_only = true},
        {.name = "keeping, 3 queues",
         .spec = "{\"target\":{\"type\":\"null\"},\"size\":32768}",
         .queues = 3,
         .deaths_only = true},
        {.name = "stripe of two loops",
         .spec = "{\"target\":{\"type\":\"stripe\",\"chunk\":4096,\"children\":[{\"type\":\"loop\","
                        "\"path\":\"@0\"},"
                        "{\"type\":\"loop\",\"path\":\"@1\"}]}}", .files = 2,
         .file_size = 64 * 1024},
        {.name = "stripe, 3 queues",
         .spec = "{\"target\":{\"type\":\"stripe\",\"chunk\":4096,\"children\":[{\"type\":\"loop\","
                        "\"path\":\"@0\"},"
                        "{\"type\":\"loop\",\"path\":\"@1\"}]}}", .files = 2,
         .file_size = 64 * 1024,
         .queues = 3},
        {.name = "stripe, plain, 3 queues",
         .spec = "{\"target\":{\"type\":\"stripe\",\"chunk\":4096,\"children\":[{\"type\":\"loop\","
                        "\"path\":\"@0\"},"
                        "{\"type\":\"loop\",\"path\":\"@1\"}]}}", .files = 2,
         .file_size = 64 * 1024,
         .queues = 3,
         .entry = CLIENT_PLAIN},
        {.name = "list of two loops",
         .spec = "{\"target\":{\"type\":\"linear\",\"children\":[{\"type\":\"linear\",\"length\":"
                        "61440,\"child\":{\"type\":"
                        "\"loop\",\"path\":\"@0\"}},{\"type\":\"loop\",\"path\":\"@1\"}]}}", .files = 2,
         .file_size = 64 * 1024},
        {.name = "list, plain",
         .spec = "{\"target\":{\"type\":\"linear\",\"children\":[{\"type\":\"linear\",\"length\":"
                        "61440,\"child\":{\"type\":"
                        "\"loop\",\"path\":\"@0\"}},{\"type\":\"loop\",\"path\":\"@1\"}]}}", .parent = "/var/tmp",
         .files = 2,
         .file_size = 64 * 1024,
         .entry = CLIENT_PLAIN},
};

static uint64_t now(void)
{
        return clock_nsec(CLOCK_MONOTONIC);
}

/* Return 0 or -errno; 1: there is a finding, or not one request went the plain way that the case asks for. */
static int judge_case(const struct crash_case *crash, struct crash_effort effort, uint64_t nanoseconds)
{
        uint64_t begin = now(), passed = 0, runs = 0, images = 0, judged = 0, plain = 0;
        struct crash_result result = {};
        bool showed_nothing;
        int r = 0;

        for (uint64_t i = 0; nanoseconds > 0 ? passed < nanoseconds : i < effort.seeds; i++) {
                struct crash_effort one = effort;

                one.seed = effort.seed + i;
                one.seeds = 1;
                r = crash_judge(crash, &one, &result);
                passed = now() - begin;
                runs++;
                images += result.images;
                judged += result.judged;
                plain += result.plain;
                if (r < 0 || result.verdict != CRASH_PASSED)
                        break;
        }
        printf("%-24s %s: %" PRIu64 " runs, %" PRIu64 " crashes, %" PRIu64 " images, %" PRIu64 " images/s\n",
                crash->name, r < 0 ? "not judged" : crash_verdict_name(result.verdict), runs, judged, images,
                passed > 0 ? images * NSEC / passed : 0);
        showed_nothing = crash->entry != CLIENT_BY_CALLBACKS && plain == 0;
        if (r >= 0 && showed_nothing)
                fprintf(stderr, "%s: no request went the plain way\n", crash->name);
        return r < 0 ? r : result.verdict != CRASH_PASSED || showed_nothing;
}

static uint64_t number(const char *text)
{
        char *end;
        uint64_t value = strtoull(text, &end, 0);

        if (*text == '\0' || *end != '\0') {
                fprintf(stderr, "crash_targets: %s is not a number\n", text);
                exit(2);
        }
        return value;
}

static bool is_chosen(const struct crash_case *crash, const char *pattern)
{
        return !pattern || fnmatch(pattern, crash->name, 0) == 0;
}

/* Return the exit status. seconds: for all chosen cases together. */
static int judge_cases(const char *pattern, struct crash_effort effort, uint64_t seconds)
{
        uint64_t chosen = 0;
        int status = 0;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                chosen += is_chosen(&cases[i], pattern);
        if (chosen == 0) {
                fprintf(stderr, "crash_targets: no case is named like %s\n", pattern);
                return 2;
        }
        printf("UBLKD_TEST_SEED=%" PRIu64 "\n", effort.seed);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                if (is_chosen(&cases[i], pattern)
                        && judge_case(&cases[i], effort, seconds * NSEC / chosen) != 0)
                        status = 1;
        return status;
}

int main(int argc, char **argv)
{
        static const struct option options[] = {
                {"seeds", required_argument, NULL, 'n'},
                {"seconds", required_argument, NULL, 't'},
                {"draws", required_argument, NULL, 'd'},
                {"seed", required_argument, NULL, 's'},
                {"case", required_argument, NULL, 'c'},
                {},
        };
        struct crash_effort effort = {.seed = crash_draw_seed(), .seeds = 10, .draws = 1};
        const char *pattern = NULL;
        uint64_t seconds = 0;
        int option;

        while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0)
                switch (option) {
                case 'n':
                        effort.seeds = number(optarg);
                        break;
                case 't':
                        seconds = number(optarg);
                        break;
                case 'd':
                        effort.draws = (unsigned)number(optarg);
                        break;
                case 's':
                        effort.seed = number(optarg);
                        break;
                case 'c':
                        pattern = optarg;
                        break;
                default:
                        return 2;
                }
        if (!io_uring_is_there())
                return CHECK_SKIP;
        return judge_cases(pattern, effort, seconds);
}
