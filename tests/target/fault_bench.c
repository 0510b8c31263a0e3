/* SPDX-License-Identifier: MIT */
/* The fault target over a file, for tests. */
#include "tests/target/fault_bench.h"

#include "targets/fault/fault_cache.h"
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/proto/region_target.h"

#include <fcntl.h>
#include <sys/mman.h>

int fault_bench_open(struct fault_bench *bench)
{
        const struct worker_msg msg = {
                .type = WORKER_MSG_CONFIG,
                .config = {.name = (char *)(uintptr_t) "test",
                           .uid = (char *)(uintptr_t) "test",
                           .spec = bench->spec,
                           .exists = bench->exists,
                           .queues = 1,
                           .queue_depth = bench->depth > 0 ? bench->depth : HOST_DEPTH,
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
        if (host->config.stack)
                host->config.stack->stores_anywhere = true;
        if (r >= 0)
                r = target_host_start(host, &problems);
        for (size_t i = 0; i < problems.count; i++)
                fprintf(stderr, "%s: %s\n", problems.items[i].pointer, problems.items[i].detail);
        return r;
}

void fault_bench_format(int fd)
{
        const struct region_kept_wish wish = {
                .target = "fault", .disk_bytes = FAULT_CACHE_BYTES, .version = 1, .new_disk = true};

        CHECK_INT(region_kept_format(fd, &(struct device_region_key){.queues = 1}, &wish, -1), 0);
}

/* before: bytes that a linear target above leaves out; 0: there is none above. */
static void set_up(struct fault_bench *bench, unsigned before, const char *more, const char *rules)
{
        char above[64] = "";
        uint64_t size;

        *bench = (struct fault_bench){.before = before};
        CHECK_INT(scratch_make(&bench->scratch, "/tmp"), 0);
        CHECK_INT(scratch_file(&bench->scratch, "file", FILE_SIZE, bench->path, sizeof(bench->path)), 0);
        if (before > 0)
                snprintf(above, sizeof(above), "{\"type\":\"linear\",\"offset\":%u,\"child\":", before);
        snprintf(bench->spec, sizeof(bench->spec),
                "{\"target\":%s{\"type\":\"fault\",\"seed\":42,%s\"rules\":[%s],\"child\":{\"type\":\"loop\","
                "\"path\":\"%s\"}}%s}",
                above, more, rules, bench->path, before > 0 ? "}" : "");
        if (before > 0) {
                CHECK_INT(target_host_new_region(bench->spec, 1, &bench->region, &size), 0);
        } else {
                bench->region = memfd_create("region", MFD_CLOEXEC);
                fault_bench_format(bench->region);
        }
        CHECK_INT(fault_bench_open(bench), 0);
}

void fault_bench_set_up_with(struct fault_bench *bench, const char *more, const char *rules)
{
        set_up(bench, 0, more, rules);
}

void fault_bench_set_up_below(struct fault_bench *bench, const char *more, const char *rules)
{
        set_up(bench, 1536, more, rules);
}

void fault_bench_set_up(struct fault_bench *bench, const char *rules)
{
        fault_bench_set_up_with(bench, "", rules);
}

void fault_bench_tear_down(struct fault_bench *bench)
{
        target_host_close(&bench->host);
        scratch_remove(&bench->scratch);
        close(bench->region);
}

unsigned fault_bench_changed_bytes(const struct fault_bench *bench)
{
        _cleanup_close_ int fd = open(bench->path, O_RDONLY | O_CLOEXEC);
        unsigned char bytes[LENGTH];
        unsigned changed = 0;

        CHECK_INT(pread(fd, bytes, sizeof(bytes), (off_t)bench->before), LENGTH);
        for (unsigned i = 0; i < LENGTH; i++)
                if (bytes[i] != scratch_pattern(bench->before + i))
                        changed = i + 1;
        return changed;
}

struct fault_counts fault_bench_counts(const struct fault_bench *bench)
{
        uint64_t numbers[REGION_TARGET_COUNTS];
        struct fault_counts counts;

        CHECK_INT(region_target_read_counts(bench->region, numbers), 0);
        memcpy(&counts, numbers, sizeof(counts));
        return counts;
}
