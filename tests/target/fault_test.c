/* SPDX-License-Identifier: MIT */
/* The fault target over a file: what each action does to the answer and to the bytes, that a worker that it has killed is
 * followed by one that lives, and that rules change under requests that wait. */
#include "targets/fault/fault.h"
#include "targets/fault/fault_cache.h"
#include "targets/fault/fault_counts.h"
#include "targets/fault/fault_parse.h"
#include "tests/target/scratch.h"
#include "tests/target/target_host.h"
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

enum { FILE_SIZE = 64 * 1024, LENGTH = 16 * 1024, DEADLINE_SEC = 30 };

struct bench {
        struct scratch scratch;
        char path[300], spec[1600];
        int region;
        struct target_host host;
};

static int open_host(struct bench *bench)
{
        const struct worker_msg msg = {
                .type = WORKER_MSG_CONFIG,
                .config = {.name = (char *)(uintptr_t) "test",
                           .uid = (char *)(uintptr_t) "test",
                           .spec = bench->spec,
                           .queues = 1,
                           .queue_depth = HOST_DEPTH,
                           .max_io_size = HOST_DATA_SIZE}
        };
        _cleanup_problems_ struct problem_list problems = {};
        struct target_host *host = &bench->host;
        int r;

        *host = (struct target_host){};
        r = worker_config_parse(&msg, &host->config, &problems);
        if (r >= 0)
                r = region_kept_give(bench->region);
        if (r >= 0)
                r = worker_config_map_region(&host->config, bench->region, &host->shared.region, &problems);
        if (r >= 0)
                r = target_host_start(host, &problems);
        for (size_t i = 0; i < problems.count; i++)
                fprintf(stderr, "%s: %s\n", problems.items[i].pointer, problems.items[i].detail);
        return r;
}

static void format_region(int fd)
{
        const struct region_kept_wish wish = {
                .target = "fault", .disk_bytes = FAULT_CACHE_BYTES, .version = 1, .new_disk = true};

        CHECK_INT(region_kept_format(fd, &(struct device_region_key){.queues = 1}, &wish, -1), 0);
}

static void set_up_with(struct bench *bench, const char *more, const char *rules)
{
        *bench = (struct bench){.region = memfd_create("region", MFD_CLOEXEC)};
        CHECK_INT(scratch_make(&bench->scratch, "/tmp"), 0);
        CHECK_INT(scratch_file(&bench->scratch, "file", FILE_SIZE, bench->path, sizeof(bench->path)), 0);
        format_region(bench->region);
        snprintf(bench->spec, sizeof(bench->spec),
                "{\"target\":{\"type\":\"fault\",\"seed\":42,%s\"rules\":[%s],\"child\":{\"type\":\"loop\","
                "\"path\":\"%s\"}}}",
                more, rules, bench->path);
        CHECK_INT(open_host(bench), 0);
}

static void set_up(struct bench *bench, const char *rules)
{
        set_up_with(bench, "", rules);
}

static void tear_down(struct bench *bench)
{
        target_host_close(&bench->host);
        scratch_remove(&bench->scratch);
        close(bench->region);
}

/* Of the file, how many of the first LENGTH bytes are no longer the pattern, and whether they are at the beginning. */
static unsigned changed_bytes(const struct bench *bench)
{
        _cleanup_close_ int fd = open(bench->path, O_RDONLY | O_CLOEXEC);
        unsigned char bytes[LENGTH];
        unsigned changed = 0;

        CHECK_INT(pread(fd, bytes, sizeof(bytes), 0), LENGTH);
        for (unsigned i = 0; i < LENGTH; i++)
                if (bytes[i] != scratch_pattern(i))
                        changed = i + 1;
        return changed;
}

/* Each byte is another one than in the file. */
static int write_all(struct bench *bench)
{
        unsigned char *data = (unsigned char *)target_host_data(&bench->host, 0);

        for (unsigned i = 0; i < LENGTH; i++)
                data[i] = (unsigned char)~scratch_pattern(i);
        return target_host_one(&bench->host, IO_WRITE, 0, 0, LENGTH);
}

static struct fault_counts counts_of(const struct bench *bench)
{
        uint64_t numbers[REGION_TARGET_COUNTS];
        struct fault_counts counts;

        CHECK_INT(region_target_read_counts(bench->region, numbers), 0);
        memcpy(&counts, numbers, sizeof(counts));
        return counts;
}

static void test_without_rules(void)
{
        struct bench bench;

        set_up(&bench, "");
        CHECK(bench.host.disk.device.linear && bench.host.disk.device.by_callbacks);
        CHECK_INT(write_all(&bench), LENGTH);
        CHECK_INT(changed_bytes(&bench), LENGTH);
        CHECK_INT(target_host_one(&bench.host, IO_READ, 0, 0, LENGTH), LENGTH);
        CHECK_INT((unsigned char)target_host_data(&bench.host, 0)[5], (unsigned char)~scratch_pattern(5));
        CHECK_INT(target_host_one(&bench.host, IO_FLUSH, 0, 0, 0), 0);
        CHECK_INT(counts_of(&bench).seed, 42);
        tear_down(&bench);
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
        struct bench bench;
        char rule[128];

        for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
                snprintf(rule, sizeof(rule),
                        "{\"action\":\"error\",\"op\":\"write\",\"nth\":2,\"error\":\"%s\"}", errors[i].name);
                set_up(&bench, rule);
                CHECK_INT(target_host_one(&bench.host, IO_WRITE, 0, LENGTH, LENGTH), LENGTH);
                CHECK_INT(write_all(&bench), -errors[i].error);
                CHECK_INT(changed_bytes(&bench), 0);
                CHECK_INT(target_host_one(&bench.host, IO_READ, 0, 0, LENGTH), LENGTH);
                CHECK_INT(counts_of(&bench).tallies[0].matched, 2);
                CHECK_INT(counts_of(&bench).tallies[0].fired, 1);
                tear_down(&bench);
        }
}

static void test_short_transfer(void)
{
        struct bench bench;

        set_up(&bench, "{\"action\":\"short\",\"bytes\":4200}");
        CHECK_INT(write_all(&bench), -EIO);
        CHECK_INT(changed_bytes(&bench), 4096);
        CHECK_INT(target_host_one(&bench.host, IO_FLUSH, 0, 0, 0), 0);
        tear_down(&bench);
}

static void test_delay(void)
{
        struct bench bench;
        uint64_t begin;

        set_up(&bench, "{\"action\":\"delay\",\"delay\":\"15ms\"},{\"action\":\"delay\",\"delay\":\"10ms\"}");
        begin = clock_nsec(CLOCK_MONOTONIC);
        CHECK_INT(write_all(&bench), LENGTH);
        CHECK(clock_nsec(CLOCK_MONOTONIC) - begin >= 25000000);
        CHECK_INT(changed_bytes(&bench), LENGTH);
        tear_down(&bench);
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
        struct bench bench;
        int fd;

        set_up(&bench, "{\"action\":\"corrupt\",\"times\":2}");
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
        tear_down(&bench);
}

/* Write in another process, and return its status. */
static int write_in_child(struct bench *bench)
{
        int status = 0;
        pid_t child;

        target_host_close(&bench->host);
        child = fork();
        if (child == 0) {
                if (open_host(bench) < 0)
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
        struct bench bench;
        char rule[128];

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                snprintf(rule, sizeof(rule), "{\"action\":\"die\",\"times\":1,\"moment\":\"%s\"}",
                        cases[i].moment);
                set_up(&bench, rule);
                CHECK_INT(write_in_child(&bench), FAULT_EXIT_STATUS);
                CHECK(!cases[i].never || changed_bytes(&bench) == 0);
                CHECK(!cases[i].always || changed_bytes(&bench) == LENGTH);
                CHECK_INT(counts_of(&bench).tallies[0].fired, 1);
                CHECK_INT(write_in_child(&bench), 0); /* as the worker after it, with the request again */
                CHECK_INT(changed_bytes(&bench), LENGTH);
                CHECK_INT(counts_of(&bench).tallies[0].matched, 2);
                tear_down(&bench);
        }
}

static void set_rules(const struct bench *bench, const char *text)
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
        const struct bench *bench = argument;
        uint64_t begin = clock_nsec(CLOCK_MONOTONIC);

        while (counts_of(bench).tallies[0].fired < 2)
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
        struct bench bench;
        pthread_t thread;

        set_up(&bench, "{\"action\":\"hang\"}");
        CHECK_INT(pthread_create(&thread, NULL, change_rules, &bench), 0);
        CHECK_INT(target_host_perform(&bench.host, requests, ARRAY_SIZE(requests)), 0);
        CHECK_INT(pthread_join(thread, NULL), 0);
        CHECK_INT(requests[0].result, LENGTH);
        CHECK_INT(requests[1].result, 0);
        CHECK_INT(counts_of(&bench).tallies[0].fired, 0); /* of the new rule */
        CHECK_INT(target_host_one(&bench.host, IO_READ, 0, 0, LENGTH), -ENODATA);
        CHECK_INT(counts_of(&bench).tallies[0].fired, 1);
        tear_down(&bench);
}

/* A worker that follows was started with the rules of the spec, and finds newer ones. */
static void test_newer_rules_at_the_start(void)
{
        struct bench bench;

        set_up(&bench, "{\"action\":\"error\"}");
        target_host_close(&bench.host);
        set_rules(&bench, "[]");
        CHECK_INT(open_host(&bench), 0);
        CHECK_INT(write_all(&bench), LENGTH);
        tear_down(&bench);
}

/* Without a seed the first worker chooses one, and the next one keeps it. */
static void test_chosen_seed(void)
{
        struct bench bench;
        uint64_t seed;
        char *given;

        set_up(&bench, "");
        tear_down(&bench);
        set_up(&bench, "{\"action\":\"corrupt\"}");
        given = strstr(bench.spec, "\"seed\":42,");
        memset(given, ' ', strlen("\"seed\":42,"));
        target_host_close(&bench.host);
        close(bench.region);
        bench.region = memfd_create("region", MFD_CLOEXEC);
        format_region(bench.region);
        CHECK_INT(open_host(&bench), 0);
        seed = counts_of(&bench).seed;
        CHECK(seed > 0 && seed < UINT64_C(1) << 53);
        target_host_close(&bench.host);
        CHECK_INT(open_host(&bench), 0);
        CHECK_INT(counts_of(&bench).seed, seed);
        tear_down(&bench);
}

/* ---- the volatile cache ---- */

#define CACHE "\"volatileCache\":true,"
#define CUT_AT_FLUSH "{\"action\":\"powercut\",\"op\":\"flush\",\"nth\":2,\"times\":1}"

enum { BLOCK = 512, BLOCKS = LENGTH / BLOCK };

static int write_letter(struct bench *bench, char letter, unsigned flags)
{
        memset(target_host_data(&bench->host, 0), letter, LENGTH);
        return target_host_one(&bench->host, IO_WRITE, flags, 0, LENGTH);
}

static int flush(struct bench *bench)
{
        return target_host_one(&bench->host, IO_FLUSH, 0, 0, 0);
}

static void read_file(const struct bench *bench, char bytes[static LENGTH])
{
        _cleanup_close_ int fd = open(bench->path, O_RDONLY | O_CLOEXEC);

        CHECK_INT(pread(fd, bytes, LENGTH, 0), LENGTH);
}

static bool file_is(const struct bench *bench, char letter)
{
        char bytes[LENGTH], wanted[LENGTH];

        read_file(bench, bytes);
        memset(wanted, letter, sizeof(wanted));
        return memcmp(bytes, wanted, sizeof(wanted)) == 0;
}

static bool disk_is(struct bench *bench, const char *wanted)
{
        CHECK_INT(target_host_one(&bench->host, IO_READ, 0, 0, LENGTH), LENGTH);
        return memcmp(target_host_data(&bench->host, 0), wanted, LENGTH) == 0;
}

static bool disk_is_all(struct bench *bench, char letter)
{
        char wanted[LENGTH];

        memset(wanted, letter, sizeof(wanted));
        return disk_is(bench, wanted);
}

static void test_writes_stay_in_the_cache_until_a_flush(void)
{
        struct bench bench;

        set_up_with(&bench, CACHE, "");
        CHECK(bench.host.disk.params.volatile_cache && bench.host.disk.params.fua);
        CHECK_INT(write_letter(&bench, 'a', 0), LENGTH);
        CHECK_INT(write_letter(&bench, 'b', 0), LENGTH);
        CHECK_INT(changed_bytes(&bench), 0);
        CHECK(disk_is_all(&bench, 'b'));
        target_host_close(&bench.host); /* as if it was killed */
        CHECK_INT(open_host(&bench), 0);
        CHECK(disk_is_all(&bench, 'b'));
        CHECK_INT(changed_bytes(&bench), 0);
        CHECK_INT(flush(&bench), 0);
        CHECK(file_is(&bench, 'b'));
        CHECK(disk_is_all(&bench, 'b'));
        tear_down(&bench);
}

static void test_fua_is_on_the_disk_and_replaces_older_blocks(void)
{
        struct bench bench;

        set_up_with(&bench, CACHE, "");
        CHECK_INT(write_letter(&bench, 'a', 0), LENGTH);
        CHECK_INT(target_host_one(&bench.host, IO_WRITE, 0, LENGTH, BLOCK),
                BLOCK); /* of others it writes none */
        CHECK_INT(write_letter(&bench, 'f', IO_FUA), LENGTH);
        CHECK(file_is(&bench, 'f'));
        CHECK(disk_is_all(&bench, 'f'));
        CHECK_INT(flush(&bench), 0);
        CHECK(file_is(&bench, 'f'));
        tear_down(&bench);
}

static void test_a_full_cache_writes_the_oldest_down(void)
{
        struct bench bench;

        set_up_with(&bench, CACHE, "");
        for (unsigned i = 0; i < 2 * FAULT_CACHE_BYTES / LENGTH; i++)
                CHECK_INT(write_letter(&bench, (char)('a' + i % 26), 0), LENGTH);
        CHECK(changed_bytes(&bench) > 0);
        CHECK_INT(write_letter(&bench, 'Z', 0), LENGTH);
        CHECK(disk_is_all(&bench, 'Z'));
        CHECK_INT(flush(&bench), 0);
        CHECK(file_is(&bench, 'Z'));
        tear_down(&bench);
}

/* Of each letter, how many blocks of the file are whole of it. */
static void count_blocks(const char bytes[static LENGTH], unsigned counts[static 256])
{
        for (unsigned i = 0; i < BLOCKS; i++) {
                const char *block = bytes + i * BLOCK;

                CHECK(memcmp(block, block + 1, BLOCK - 1) == 0);
                counts[(unsigned char)block[0]]++;
        }
}

static void cut_in_child(struct bench *bench)
{
        int status = 0;
        pid_t child;

        target_host_close(&bench->host);
        child = fork();
        if (child == 0) {
                if (open_host(bench) < 0 || write_letter(bench, 'a', 0) != LENGTH || flush(bench) < 0
                        || write_letter(bench, 'b', 0) != LENGTH || write_letter(bench, 'c', 0) != LENGTH)
                        _exit(1);
                (void)flush(bench);
                _exit(2);
        }
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == FAULT_EXIT_STATUS);
}

/* What was flushed stays; of what was not, each block is an older or a newer one, as the seed decides. */
static void test_power_cut(void)
{
        char first[LENGTH], bytes[LENGTH];
        unsigned counts[256] = {};
        struct bench bench;

        for (unsigned run = 0; run < 2; run++) {
                set_up_with(&bench, CACHE, CUT_AT_FLUSH);
                cut_in_child(&bench);
                read_file(&bench, run == 0 ? first : bytes);
                CHECK_INT(open_host(&bench), 0);
                CHECK(disk_is(&bench, run == 0 ? first : bytes));
                CHECK_INT(flush(&bench), 0); /* nothing comes back */
                CHECK(disk_is(&bench, first));
                tear_down(&bench);
        }
        CHECK(memcmp(first, bytes, LENGTH) == 0);
        count_blocks(first, counts);
        CHECK(counts['a'] > 0 && counts['b'] > 0 && counts['c'] > 0);
        CHECK_INT(counts['a'] + counts['b'] + counts['c'], BLOCKS);
}

/* The worker was killed after the cut had begun. */
static void test_power_cut_is_finished_by_the_next_worker(void)
{
        struct fault_cache_head *head;
        unsigned counts[256] = {};
        struct bench bench;
        char bytes[LENGTH];

        set_up_with(&bench, CACHE, "");
        CHECK_INT(write_letter(&bench, 'a', 0), LENGTH);
        CHECK_INT(flush(&bench), 0);
        CHECK_INT(write_letter(&bench, 'b', 0), LENGTH);
        head = bench.host.disk.device.kept.memory;
        head->cut = 12345;
        target_host_close(&bench.host);
        CHECK_INT(open_host(&bench), 0);
        CHECK_INT(target_host_one(&bench.host, IO_READ, 0, 0, LENGTH), LENGTH);
        memcpy(bytes, target_host_data(&bench.host, 0), LENGTH);
        count_blocks(bytes, counts);
        CHECK(counts['a'] > 0 && counts['b'] > 0);
        CHECK_INT(counts['a'] + counts['b'], BLOCKS);
        CHECK_INT(flush(&bench), 0);
        CHECK(disk_is(&bench, bytes));
        tear_down(&bench);
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
        test_chosen_seed();
        test_writes_stay_in_the_cache_until_a_flush();
        test_fua_is_on_the_disk_and_replaces_older_blocks();
        test_a_full_cache_writes_the_oldest_down();
        test_power_cut();
        test_power_cut_is_finished_by_the_next_worker();
        return check_report();
}
