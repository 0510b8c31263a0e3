/* SPDX-License-Identifier: MIT */
/* The fault target over a file: what each action does to the answer and to the bytes, that a worker that it has killed is
 * followed by one that lives, and that rules change under requests that wait. */
#include "targets/fault/fault_parse.h"
#include "targets/target_desc.h"
#include "tests/target/fault_bench.h"
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"
#include "ublkd/proto/region_target.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { DEADLINE_SEC = 30 };

/* Each byte is another one than in the file. */
static int write_all(struct fault_bench *bench)
{
        unsigned char *data = (unsigned char *)target_host_data(&bench->host, 0);

        for (unsigned i = 0; i < LENGTH; i++)
                data[i] = (unsigned char)~scratch_pattern(i);
        return target_host_one(&bench->host, IO_WRITE, 0, 0, LENGTH);
}

static void test_without_rules(void)
{
        struct fault_bench bench;

        fault_bench_set_up(&bench, "");
        CHECK(bench.host.disk.device.linear && bench.host.disk.device.by_callbacks);
        CHECK_INT(write_all(&bench), LENGTH);
        CHECK_INT(fault_bench_changed_bytes(&bench), LENGTH);
        CHECK_INT(target_host_one(&bench.host, IO_READ, 0, 0, LENGTH), LENGTH);
        CHECK_INT((unsigned char)target_host_data(&bench.host, 0)[5], (unsigned char)~scratch_pattern(5));
        CHECK_INT(target_host_one(&bench.host, IO_FLUSH, 0, 0, 0), 0);
        CHECK_INT(fault_bench_counts(&bench).seed, 42);
        fault_bench_tear_down(&bench);
}

static void test_error_reaches_nothing(void)
{
        static const struct {
                const char *name;
                int error;
        } errors[] = {
                {"EIO",        EIO       },
                {"ENOSPC",     ENOSPC    },
                {"EROFS",      EROFS     },
                {"EOPNOTSUPP", EOPNOTSUPP},
                {"ENOMEM",     ENOMEM    },
                {"ETIMEDOUT",  ETIMEDOUT },
                {"EINVAL",     EINVAL    },
                {"ENODATA",    ENODATA   },
                {"EILSEQ",     EILSEQ    },
                {"ENOLINK",    ENOLINK   },
        };
        struct fault_bench bench;
        char rule[128];

        for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
                snprintf(rule, sizeof(rule),
                        "{\"action\":\"error\",\"op\":\"write\",\"nth\":2,\"error\":\"%s\"}", errors[i].name);
                fault_bench_set_up(&bench, rule);
                CHECK_INT(target_host_one(&bench.host, IO_WRITE, 0, LENGTH, LENGTH), LENGTH);
                CHECK_INT(write_all(&bench), -errors[i].error);
                CHECK_INT(fault_bench_changed_bytes(&bench), 0);
                CHECK_INT(target_host_one(&bench.host, IO_READ, 0, 0, LENGTH), LENGTH);
                CHECK_INT(fault_bench_counts(&bench).tallies[0].matched, 2);
                CHECK_INT(fault_bench_counts(&bench).tallies[0].fired, 1);
                fault_bench_tear_down(&bench);
        }
}

static void test_short_transfer(void)
{
        struct fault_bench bench;

        fault_bench_set_up(&bench, "{\"action\":\"short\",\"bytes\":4200}");
        CHECK_INT(write_all(&bench), -EIO);
        CHECK_INT(fault_bench_changed_bytes(&bench), 4096);
        CHECK_INT(target_host_one(&bench.host, IO_FLUSH, 0, 0, 0), 0);
        fault_bench_tear_down(&bench);
}

static void test_delay(void)
{
        struct fault_bench bench;
        uint64_t begin;

        fault_bench_set_up(&bench,
                "{\"action\":\"delay\",\"delay\":\"15ms\"},{\"action\":\"delay\",\"delay\":\"10ms\"}");
        begin = clock_nsec(CLOCK_MONOTONIC);
        CHECK_INT(write_all(&bench), LENGTH);
        CHECK(clock_nsec(CLOCK_MONOTONIC) - begin >= 25000000);
        CHECK_INT(fault_bench_changed_bytes(&bench), LENGTH);
        fault_bench_tear_down(&bench);
}

static unsigned bits_that_differ(const unsigned char *one, bool inverted)
{
        unsigned bits = 0;

        for (unsigned i = 0; i < LENGTH; i++)
                bits += (unsigned)__builtin_popcount(
                        (unsigned char)(one[i] ^ scratch_pattern(i) ^ (inverted ? 0xff : 0)));
        return bits;
}

static void test_corruption_is_one_bit(void)
{
        unsigned char bytes[LENGTH];
        struct fault_bench bench;
        int fd;

        fault_bench_set_up(&bench, "{\"action\":\"corrupt\",\"times\":2}");
        CHECK_INT(target_host_one(&bench.host, IO_READ, 0, 0, LENGTH), LENGTH);
        CHECK_INT(bits_that_differ((unsigned char *)target_host_data(&bench.host, 0), false), 1);
        CHECK_INT(write_all(&bench), LENGTH);
        CHECK_INT(bits_that_differ((unsigned char *)target_host_data(&bench.host, 0), true), 0);
        fd = open(bench.path, O_RDONLY | O_CLOEXEC);
        CHECK_INT(pread(fd, bytes, sizeof(bytes), 0), LENGTH);
        CHECK_INT(bits_that_differ(bytes, true), 1);
        close(fd);
        CHECK_INT(write_all(&bench), LENGTH);
        CHECK_INT(bits_that_differ((unsigned char *)target_host_data(&bench.host, 0), true), 0);
        fault_bench_tear_down(&bench);
}

/* Write in another process, and return its status. */
static int write_in_child(struct fault_bench *bench)
{
        int status = 0;
        pid_t child;

        target_host_close(&bench->host);
        child = fork();
        if (child == 0) {
                if (fault_bench_open(bench) < 0)
                        _exit(1);
                _exit(write_all(bench) == LENGTH ? 0 : 2);
        }
        CHECK_INT(waitpid(child, &status, 0), child);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_death(void)
{
        static const struct {
                const char *moment;
                bool never, always; /* whether the bytes have been written */
        } cases[] = {
                {"before", true,  false},
                {"during", false, false},
                {"after",  false, true },
        };
        struct fault_bench bench;
        char rule[128];

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                snprintf(rule, sizeof(rule), "{\"action\":\"die\",\"times\":1,\"moment\":\"%s\"}",
                        cases[i].moment);
                fault_bench_set_up(&bench, rule);
                CHECK_INT(write_in_child(&bench), FAULT_EXIT_STATUS);
                CHECK(!cases[i].never || fault_bench_changed_bytes(&bench) == 0);
                CHECK(!cases[i].always || fault_bench_changed_bytes(&bench) == LENGTH);
                CHECK_INT(fault_bench_counts(&bench).tallies[0].fired, 1);
                CHECK_INT(write_in_child(&bench), 0); /* as the worker after it, with the request again */
                CHECK_INT(fault_bench_changed_bytes(&bench), LENGTH);
                CHECK_INT(fault_bench_counts(&bench).tallies[0].matched, 2);
                fault_bench_tear_down(&bench);
        }
}

static void set_rules(const struct fault_bench *bench, const char *text)
{
        cJSON *json = cJSON_Parse(text);
        struct fault_options options = {.rules = json};
        _cleanup_problems_ struct problem_list problems = {};
        struct fault_rules rules;

        CHECK_INT(fault_parse(&options, &rules, &problems), 0);
        CHECK_INT(problems.count, 0);
        CHECK_INT(region_target_set_options(bench->region, &rules, sizeof(rules)), 1);
        CHECK_INT(region_target_set_options(bench->region, &rules, sizeof(rules)), 0);
        cJSON_Delete(json);
}

/* The supervisor: it waits until both requests hang, and then changes the rules. */
static void *change_rules(void *argument)
{
        const struct fault_bench *bench = argument;
        uint64_t begin = clock_nsec(CLOCK_MONOTONIC);

        while (fault_bench_counts(bench).tallies[0].fired < 2)
                if (!CHECK(clock_nsec(CLOCK_MONOTONIC) - begin < DEADLINE_SEC * UINT64_C(1000000000)))
                        break;
                else
                        sched_yield();
        set_rules(bench, "[{\"action\":\"error\",\"op\":\"read\",\"error\":\"ENODATA\"}]");
        return NULL;
}

static void test_hang_ends_with_a_change_of_rules(void)
{
        struct host_request requests[2] = {
                {.op = IO_READ,  .offset = 0, .length = LENGTH},
                {.op = IO_FLUSH, .offset = 0, .length = 0     },
        };
        struct fault_bench bench;
        pthread_t thread;

        fault_bench_set_up(&bench, "{\"action\":\"hang\"}");
        CHECK_INT(pthread_create(&thread, NULL, change_rules, &bench), 0);
        CHECK_INT(target_host_perform(&bench.host, requests, ARRAY_SIZE(requests)), 0);
        CHECK_INT(pthread_join(thread, NULL), 0);
        CHECK_INT(requests[0].result, LENGTH);
        CHECK_INT(requests[1].result, 0);
        CHECK_INT(fault_bench_counts(&bench).tallies[0].fired, 0); /* of the new rule */
        CHECK_INT(target_host_one(&bench.host, IO_READ, 0, 0, LENGTH), -ENODATA);
        CHECK_INT(fault_bench_counts(&bench).tallies[0].fired, 1);
        fault_bench_tear_down(&bench);
}

/* A worker that follows was started with the rules of the spec, and finds newer ones. */
static void test_newer_rules_at_the_start(void)
{
        struct fault_bench bench;

        fault_bench_set_up(&bench, "{\"action\":\"error\"}");
        target_host_close(&bench.host);
        set_rules(&bench, "[]");
        CHECK_INT(fault_bench_open(&bench), 0);
        CHECK_INT(write_all(&bench), LENGTH);
        fault_bench_tear_down(&bench);
}

/* A worker keeps to the rules that it has where the region has what no spec can have. */
static void test_rules_that_cannot_be(void)
{
        struct fault_rules rules = {.version = FAULT_RULES_VERSION,
                .count = 1,
                .rules = {{.operations = UINT32_MAX, .value = EIO}}};
        struct fault_bench bench;

        fault_bench_set_up(&bench, "");
        CHECK_INT(region_target_set_options(bench.region, &rules, sizeof(rules)), 1);
        CHECK_INT(write_all(&bench), LENGTH); /* not: a division by `nth` */
        rules.rules[0].nth = 1;
        CHECK_INT(region_target_set_options(bench.region, &rules, sizeof(rules) - 1), 1);
        CHECK_INT(write_all(&bench), LENGTH);
        rules.rules[0].per_million = 1000000;
        CHECK_INT(region_target_set_options(bench.region, &rules, sizeof(rules)), 1);
        CHECK_INT(write_all(&bench), -EIO);
        fault_bench_tear_down(&bench);
}

static double shown(const struct fault_bench *bench, const char *rules, const char *field)
{
        const struct target_desc *desc = fault_target.desc;
        struct fault_options options = {.rules = cJSON_Parse(rules)};
        cJSON *statistics = cJSON_CreateObject();
        uint64_t numbers[REGION_TARGET_COUNTS];
        double value;

        CHECK_INT(region_target_read_counts(bench->region, numbers), 0);
        CHECK(desc->show_counts(&options, numbers, statistics));
        value = cJSON_GetNumberValue(cJSON_GetObjectItem(
                cJSON_GetArrayItem(cJSON_GetObjectItem(cJSON_GetObjectItem(statistics, "fault"), "rules"), 0),
                field));
        cJSON_Delete(statistics);
        cJSON_Delete(options.rules);
        return value;
}

/* The worker counts for the rules that it has, until its next request. */
static void test_the_counts_of_one_rule_are_not_shown_for_another(void)
{
        static const char old[] = "[{\"action\":\"delay\",\"delay\":\"1us\"}]",
                          new[] = "[{\"action\":\"error\",\"op\":\"write\"}]";
        struct fault_bench bench;

        fault_bench_set_up(&bench, "{\"action\":\"delay\",\"delay\":\"1us\"}");
        CHECK_INT(write_all(&bench), LENGTH);
        CHECK_INT(shown(&bench, old, "fired"), 1);
        set_rules(&bench, new);
        CHECK_INT(shown(&bench, new, "fired"), 0);
        CHECK_INT(shown(&bench, new, "matched"), 0);
        CHECK_INT(write_all(&bench), -EIO);
        CHECK_INT(shown(&bench, new, "fired"), 1);
        fault_bench_tear_down(&bench);
}

/* Without a seed the first worker chooses one, and the next one keeps it. */
static void test_chosen_seed(void)
{
        struct fault_bench bench;
        uint64_t seed;
        char *given;

        fault_bench_set_up(&bench, "");
        fault_bench_tear_down(&bench);
        fault_bench_set_up(&bench, "{\"action\":\"corrupt\"}");
        given = strstr(bench.spec, "\"seed\":42,");
        memset(given, ' ', strlen("\"seed\":42,"));
        target_host_close(&bench.host);
        close(bench.region);
        bench.region = memfd_create("region", MFD_CLOEXEC);
        fault_bench_format(bench.region);
        CHECK_INT(fault_bench_open(&bench), 0);
        seed = fault_bench_counts(&bench).seed;
        CHECK(seed > 0 && seed < UINT64_C(1) << 52); /* the schema takes it back, with a margin */
        target_host_close(&bench.host);
        CHECK_INT(fault_bench_open(&bench), 0);
        CHECK_INT(fault_bench_counts(&bench).seed, seed);
        fault_bench_tear_down(&bench);
}

int main(void)
{
        test_without_rules();
        test_error_reaches_nothing();
        test_short_transfer();
        test_delay();
        test_corruption_is_one_bit();
        test_death();
        test_hang_ends_with_a_change_of_rules();
        test_newer_rules_at_the_start();
        test_rules_that_cannot_be();
        test_the_counts_of_one_rule_are_not_shown_for_another();
        test_chosen_seed();
        return check_report();
}
