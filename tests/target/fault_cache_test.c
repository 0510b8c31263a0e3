/* SPDX-License-Identifier: MIT */
/* The volatile cache of the fault target: what it holds back, what a flush and FUA write down, what a power cut leaves. */
#include "targets/fault/fault_cache.h"
#include "tests/target/fault_bench.h"
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#define CACHE "\"volatileCache\":true,"
#define CUT_AT_FLUSH "{\"action\":\"powercut\",\"op\":\"flush\",\"nth\":2,\"times\":1}"

enum { BLOCK = 512, BLOCKS = LENGTH / BLOCK };

static bool is_below; /* another target */

static void set_up(struct fault_bench *bench, const char *rules)
{
        if (is_below)
                fault_bench_set_up_below(bench, CACHE, rules);
        else
                fault_bench_set_up_with(bench, CACHE, rules);
}

static int write_letter(struct fault_bench *bench, char letter, unsigned flags)
{
        memset(target_host_data(&bench->host, 0), letter, LENGTH);
        return target_host_one(&bench->host, IO_WRITE, flags, 0, LENGTH);
}

static int flush(struct fault_bench *bench)
{
        return target_host_one(&bench->host, IO_FLUSH, 0, 0, 0);
}

static void read_file(const struct fault_bench *bench, char bytes[static LENGTH])
{
        _cleanup_close_ int fd = open(bench->path, O_RDONLY | O_CLOEXEC);

        CHECK_INT(pread(fd, bytes, LENGTH, (off_t)bench->before), LENGTH);
}

static bool file_is(const struct fault_bench *bench, char letter)
{
        char bytes[LENGTH], wanted[LENGTH];

        read_file(bench, bytes);
        memset(wanted, letter, sizeof(wanted));
        return memcmp(bytes, wanted, sizeof(wanted)) == 0;
}

static bool disk_is(struct fault_bench *bench, const char *wanted)
{
        CHECK_INT(target_host_one(&bench->host, IO_READ, 0, 0, LENGTH), LENGTH);
        return memcmp(target_host_data(&bench->host, 0), wanted, LENGTH) == 0;
}

static bool disk_is_all(struct fault_bench *bench, char letter)
{
        char wanted[LENGTH];

        memset(wanted, letter, sizeof(wanted));
        return disk_is(bench, wanted);
}

static void test_writes_stay_in_the_cache_until_a_flush(void)
{
        struct fault_bench bench;

        set_up(&bench, "");
        CHECK(bench.host.disk.params.volatile_cache && bench.host.disk.params.fua);
        CHECK_INT(write_letter(&bench, 'a', 0), LENGTH);
        CHECK_INT(write_letter(&bench, 'b', 0), LENGTH);
        CHECK_INT(fault_bench_changed_bytes(&bench), 0);
        CHECK(disk_is_all(&bench, 'b'));
        target_host_close(&bench.host); /* as if it was killed */
        CHECK_INT(fault_bench_open(&bench), 0);
        CHECK(disk_is_all(&bench, 'b'));
        CHECK_INT(fault_bench_changed_bytes(&bench), 0);
        CHECK_INT(flush(&bench), 0);
        CHECK(file_is(&bench, 'b'));
        CHECK(disk_is_all(&bench, 'b'));
        fault_bench_tear_down(&bench);
}

static void test_fua_is_on_the_disk_and_replaces_older_blocks(void)
{
        struct fault_bench bench;

        set_up(&bench, "");
        CHECK_INT(write_letter(&bench, 'a', 0), LENGTH);
        CHECK_INT(target_host_one(&bench.host, IO_WRITE, 0, LENGTH, BLOCK),
                BLOCK); /* of others it writes none */
        CHECK_INT(write_letter(&bench, 'f', IO_FUA), LENGTH);
        CHECK(file_is(&bench, 'f'));
        CHECK(disk_is_all(&bench, 'f'));
        CHECK_INT(flush(&bench), 0);
        CHECK(file_is(&bench, 'f'));
        fault_bench_tear_down(&bench);
}

static void test_a_full_cache_writes_the_oldest_down(void)
{
        struct fault_bench bench;

        set_up(&bench, "");
        for (unsigned i = 0; i < 2 * FAULT_CACHE_BYTES / LENGTH; i++)
                CHECK_INT(write_letter(&bench, (char)('a' + i % 26), 0), LENGTH);
        CHECK(fault_bench_changed_bytes(&bench) > 0);
        CHECK_INT(write_letter(&bench, 'Z', 0), LENGTH);
        CHECK(disk_is_all(&bench, 'Z'));
        CHECK_INT(flush(&bench), 0);
        CHECK(file_is(&bench, 'Z'));
        fault_bench_tear_down(&bench);
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

static void cut_in_child(struct fault_bench *bench)
{
        int status = 0;
        pid_t child;

        target_host_close(&bench->host);
        child = fork();
        if (child == 0) {
                if (fault_bench_open(bench) < 0 || write_letter(bench, 'a', 0) != LENGTH || flush(bench) < 0
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
        struct fault_bench bench;

        for (unsigned run = 0; run < 2; run++) {
                set_up(&bench, CUT_AT_FLUSH);
                cut_in_child(&bench);
                read_file(&bench, run == 0 ? first : bytes);
                CHECK_INT(fault_bench_open(&bench), 0);
                CHECK(disk_is(&bench, run == 0 ? first : bytes));
                CHECK_INT(flush(&bench), 0); /* nothing comes back */
                CHECK(disk_is(&bench, first));
                fault_bench_tear_down(&bench);
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
        struct fault_bench bench;
        char bytes[LENGTH];

        set_up(&bench, "");
        CHECK_INT(write_letter(&bench, 'a', 0), LENGTH);
        CHECK_INT(flush(&bench), 0);
        CHECK_INT(write_letter(&bench, 'b', 0), LENGTH);
        head = bench.host.disk.device.kept.memory;
        head->cut = 12345;
        target_host_close(&bench.host);
        CHECK_INT(fault_bench_open(&bench), 0);
        CHECK_INT(target_host_one(&bench.host, IO_READ, 0, 0, LENGTH), LENGTH);
        memcpy(bytes, target_host_data(&bench.host, 0), LENGTH);
        count_blocks(bytes, counts);
        CHECK(counts['a'] > 0 && counts['b'] > 0);
        CHECK_INT(counts['a'] + counts['b'], BLOCKS);
        CHECK_INT(flush(&bench), 0);
        CHECK(disk_is(&bench, bytes));
        fault_bench_tear_down(&bench);
}

/* A disk that is there gives its block size to the next worker, and it can be larger than that of the target. */
static void test_blocks_keep_the_size_that_they_were_written_with(void)
{
        static char memory[FAULT_CACHE_BYTES], small[BLOCK], large[4096];
        struct fault_cache cache;

        memset(memory, 0, sizeof(memory));
        memset(small, 's', sizeof(small));
        memset(large, 'l', sizeof(large));
        CHECK_INT(fault_cache_open(&cache, memory, BLOCK, 0), 0);
        CHECK(fault_cache_put(&cache, 3, small));
        CHECK_INT(fault_cache_open(&cache, memory, sizeof(large), 0), 0);
        CHECK_INT(cache.block_size, BLOCK);
        if (CHECK(fault_cache_find(&cache, 3)))
                CHECK_INT(memcmp(fault_cache_find(&cache, 3), small, BLOCK), 0);
        cache.head->block_size = 0; /* as an older program has left it */
        CHECK_INT(fault_cache_open(&cache, memory, BLOCK, 0), 0);
        CHECK_INT(cache.block_size, BLOCK);
        CHECK(fault_cache_find(&cache, 3));
}

/* Each slot would have the bytes of another block. */
static void test_blocks_of_another_size_are_damage(void)
{
        static const uint64_t bad[] = {1, 256, 768, 4096, UINT64_C(1) << 32};
        static char memory[FAULT_CACHE_BYTES], before[FAULT_CACHE_BYTES], data[BLOCK];
        struct fault_cache cache;

        CHECK_INT(fault_cache_open(&cache, memory, BLOCK, 0), 0);
        CHECK(fault_cache_put(&cache, 1, data));
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                ((struct fault_cache_head *)(void *)memory)->block_size = bad[i];
                memcpy(before, memory, sizeof(memory));
                CHECK_INT(fault_cache_open(&cache, memory, BLOCK, 0), -ENODATA);
                CHECK(memcmp(before, memory, sizeof(memory)) == 0);
        }
}

static void test_blocks_behind_the_end_are_damage(void)
{
        static char memory[FAULT_CACHE_BYTES], data[BLOCK];
        struct fault_cache cache;

        CHECK_INT(fault_cache_open(&cache, memory, BLOCK, 8 * BLOCK), 0);
        CHECK(fault_cache_put(&cache, 7, data));
        CHECK_INT(fault_cache_open(&cache, memory, BLOCK, 8 * BLOCK), 0);
        CHECK(fault_cache_put(&cache, 8, data));
        CHECK_INT(fault_cache_open(&cache, memory, BLOCK, 8 * BLOCK), -ENODATA);
        CHECK_INT(fault_cache_open(&cache, memory, BLOCK, 0), 0);
        cache.slots[1].block = UINT64_MAX / BLOCK;
        CHECK_INT(fault_cache_open(&cache, memory, BLOCK, 0), -ENODATA);
}

static void test_a_damaged_cache_is_not_served(void)
{
        struct fault_cache_head *head;
        struct fault_bench bench;

        set_up(&bench, "");
        CHECK_INT(write_letter(&bench, 'a', 0), LENGTH);
        head = bench.host.disk.device.kept.memory;
        head->block_size = 768;
        target_host_close(&bench.host);
        CHECK_INT(fault_bench_open(&bench), -ENODATA);
        CHECK_INT(fault_bench_changed_bytes(&bench), 0);
        fault_bench_tear_down(&bench);
}

/* Of the whole disk: another target of the tree may have made its blocks larger than those below the fault target. */
static void test_requests_begin_within_a_block_of_the_disk(void)
{
        static const char of_disk[] = ",\"size\":61440,\"blockSize\":4096}";
        char bytes[4096];
        struct fault_bench bench;
        uint64_t size;

        fault_bench_set_up_below(&bench, CACHE, "");
        target_host_close(&bench.host);
        close(bench.region);
        CHECK_INT(target_host_new_region(bench.spec, 1, &bench.region, &size), 0); /* as if it was lost */
        memcpy(bench.spec + strlen(bench.spec) - 1, of_disk, sizeof(of_disk));
        bench.exists = true;
        if (CHECK_INT(fault_bench_open(&bench), 0)) {
                _cleanup_close_ int fd = open(bench.path, O_RDONLY | O_CLOEXEC);

                CHECK_INT(write_letter(&bench, 'a', 0), LENGTH);
                CHECK(disk_is_all(&bench, 'a'));
                CHECK_INT(flush(&bench), 0);
                CHECK(file_is(&bench, 'a'));
                CHECK_INT(pread(fd, bytes, bench.before, 0), bench.before);
                for (unsigned i = 0; i < bench.before; i++)
                        CHECK_INT((unsigned char)bytes[i], (unsigned char)scratch_pattern(i));
        }
        fault_bench_tear_down(&bench);
}

/* Over null, which announces no cache: the kernel sends a flush only to a disk that announces one. */
static void test_the_cache_is_announced(void)
{
        static const struct {
                const char *target;
                bool announces;
        } cases[] = {
                {"{\"type\":\"null\"}",                                                  false},
                {"{\"type\":\"fault\",\"child\":{\"type\":\"null\"}}",                   false},
                {"{\"type\":\"fault\"," CACHE "\"child\":{\"type\":\"null\"}}",          true },
                {"{\"type\":\"linear\",\"offset\":512,\"child\":{\"type\":\"fault\"," CACHE
                 "\"child\":{\"type\":\"null\"}}}",                     true },
                {"{\"type\":\"stripe\",\"chunk\":4096,\"children\":[{\"type\":\"null\"},{\"type\":\"fault\","
                 "\"child\":{\"type\":\"null\"}}]}",                    false},
                {"{\"type\":\"stripe\",\"chunk\":4096,\"children\":[{\"type\":\"null\"},{\"type\":"
                 "\"fault\"," CACHE "\"child\":{\"type\":\"null\"}}]}",
                 true                                                                         },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_problems_ struct problem_list problems = {};
                struct target_host host;
                char spec[512];

                snprintf(spec, sizeof(spec), "{\"target\":%s,\"size\":1048576}", cases[i].target);
                if (CHECK_INT(target_host_open(&host, spec, &problems), 0)) {
                        CHECK_INT(host.disk.params.volatile_cache, cases[i].announces);
                        CHECK_INT(host.disk.params.fua, cases[i].announces);
                }
                target_host_close(&host);
        }
}

int main(void)
{
        test_blocks_keep_the_size_that_they_were_written_with();
        test_blocks_of_another_size_are_damage();
        test_blocks_behind_the_end_are_damage();
        test_requests_begin_within_a_block_of_the_disk();
        test_the_cache_is_announced();
        for (unsigned i = 0; i < 2; i++) {
                is_below = i > 0;
                test_writes_stay_in_the_cache_until_a_flush();
                test_fua_is_on_the_disk_and_replaces_older_blocks();
                test_a_full_cache_writes_the_oldest_down();
                test_power_cut();
                test_power_cut_is_finished_by_the_next_worker();
                test_a_damaged_cache_is_not_served();
        }
        return check_report();
}
