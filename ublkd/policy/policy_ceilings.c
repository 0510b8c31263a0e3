/* SPDX-License-Identifier: MIT */
/* The numbers of a spec that a rule bounds one by one. */
#include "ublkd/policy/policy_ceilings.h"

#include "ublkd/policy/policy_verdict.h"
#include "ublkd/values/quantity.h"

#include <stddef.h>
#include <string.h>

struct ceiling {
        const char *pointer;
        size_t most, value; /* into the options of the rule, of the spec; both have 8 bytes */
        bool bytes;
        bool optional;  /* 0 in the rule: no ceiling; 0 in the spec: no limit */
        uint64_t least; /* of a spec, whose limit is its tenant's choice; a lower ceiling counts. 0: none */
};

/* sync(2) of every process waits for the slowest disk. With these limits each GiB of buffered writes takes 17 minutes;
 * vm.dirty_ratio and the size of the disk bound how many GiB that are. The buffers of a disk whose size is not a multiple of 4 KiB
 * have 512 bytes: with every second one written, a page is four requests that cannot be merged. */
enum { LEAST_BYTES_PER_SEC = 1 << 20, LEAST_IOPS = LEAST_BYTES_PER_SEC / 4096 * 4 };

#define FIELDS(field)                                                                                        \
        .most = offsetof(struct policy_rule_options, field), .value = offsetof(struct device_options, field)

static const struct ceiling ceilings[] = {
        {.pointer = "/queueDepth", FIELDS(queue_depth)},
        {.pointer = "/maxIoSize", FIELDS(max_io_size), .bytes = true},
        {.pointer = "/busyPollUs", FIELDS(busy_poll_us)},
        {.pointer = "/limits/read/iops", FIELDS(limits.read.iops), .optional = true, .least = LEAST_IOPS},
        {.pointer = "/limits/read/bytesPerSec",
         FIELDS(limits.read.bytes_per_sec),
         .bytes = true,
         .optional = true,
         .least = LEAST_BYTES_PER_SEC},
        {.pointer = "/limits/write/iops", FIELDS(limits.write.iops), .optional = true, .least = LEAST_IOPS},
        {.pointer = "/limits/write/bytesPerSec",
         FIELDS(limits.write.bytes_per_sec),
         .bytes = true,
         .optional = true,
         .least = LEAST_BYTES_PER_SEC},
        {.pointer = "/resources/cpuWeight", FIELDS(resources.cpu_weight), .optional = true},
        {.pointer = "/resources/memoryMax", FIELDS(resources.memory_max), .bytes = true, .optional = true},
        {.pointer = "/resources/ioMax/read/iops",
         FIELDS(resources.io_max.read.iops),
         .optional = true,
         .least = LEAST_IOPS},
        {.pointer = "/resources/ioMax/read/bytesPerSec",
         FIELDS(resources.io_max.read.bytes_per_sec),
         .bytes = true,
         .optional = true,
         .least = LEAST_BYTES_PER_SEC},
        {.pointer = "/resources/ioMax/write/iops",
         FIELDS(resources.io_max.write.iops),
         .optional = true,
         .least = LEAST_IOPS},
        {.pointer = "/resources/ioMax/write/bytesPerSec",
         FIELDS(resources.io_max.write.bytes_per_sec),
         .bytes = true,
         .optional = true,
         .least = LEAST_BYTES_PER_SEC},
        {.pointer = "/resources/pidsMax", FIELDS(resources.pids_max), .optional = true},
};

static uint64_t read_number(const void *options, size_t offset)
{
        uint64_t number;

        memcpy(&number, (const char *)options + offset, sizeof(number));
        return number;
}

static void print(uint64_t number, bool bytes, char ret[static SIZE_TEXT_MAX])
{
        if (bytes)
                format_size(number, ret);
        else
                snprintf(ret, SIZE_TEXT_MAX, "%llu", (unsigned long long)number);
}

/* As users write it: "limits.read.iops". */
static void print_path(const char *pointer, char ret[static 64])
{
        snprintf(ret, 64, "%s", pointer + 1);
        for (char *slash = ret; (slash = strchr(slash, '/'));)
                *slash = '.';
}

static void check(struct policy_verdict *verdict, const struct ceiling *ceiling)
{
        uint64_t most = read_number(&verdict->rule->options, ceiling->most);
        uint64_t value = read_number(&verdict->spec->options, ceiling->value);
        uint64_t least = most > 0 && most < ceiling->least ? most : ceiling->least;
        char text[SIZE_TEXT_MAX], name[64];

        print_path(ceiling->pointer, name);
        if (value > 0 && value < least) {
                print(least, ceiling->bytes, text);
                policy_forbid(verdict, ceiling->pointer,
                        "allows no %s below %s, because sync(2) of every process would wait for it; give %s "
                        "at least",
                        name, text, text);
                return;
        }
        if (ceiling->optional && most == 0)
                return;
        print(most, ceiling->bytes, text);
        if (ceiling->optional && value == 0)
                policy_require(verdict, ceiling->pointer, "give %s, %s at most", name, text);
        else if (value > most)
                policy_exceed(
                        verdict, ceiling->pointer, "allows %s of %s; give %s at most", name, text, text);
}

/* An automatic number counts as what it can become on a larger machine. */
static void check_queues(struct policy_verdict *verdict)
{
        int64_t queues = verdict->spec->options.queues, most = verdict->rule->options.queues;

        if (queues == OPTION_AUTO)
                queues = QUEUES_AUTO_MAX;
        if (queues > most)
                policy_exceed(verdict, "/queues", "allows %lld queues, and %s can be %lld; give %lld at most",
                        (long long)most, verdict->spec->options.queues == OPTION_AUTO ? "\"auto\"" : "these",
                        (long long)queues, (long long)most);
}

/* What a worker needs beside the bytes of its requests. With as much in all, two queues of 128 requests are served
 * (test_a_tight_limit_of_memory_loses_no_byte); an idle worker has 0.7 MiB, and one after a load 1.4 (bench/RESULTS.md). */
enum { WORKER_OWN_BYTES = 16 << 20 };

static uint64_t memory_for(uint64_t queues, uint64_t depth, uint64_t io_size)
{
        return WORKER_OWN_BYTES + queues * depth * io_size;
}

/* The least numbers that schemas/device.schema.json allows. */
uint64_t policy_ceilings_least_memory(void)
{
        return memory_for(1, 1, 4096);
}

/* A worker that dies of too little memory dies again when the requests come back, and sync(2) of every process waits. It
 * has the bytes of all requests where they are copied. recovery.giveUpAfter does not end that: the disk is Live between. */
static void check_memory(struct policy_verdict *verdict)
{
        const struct device_options *options = &verdict->spec->options;
        uint64_t queues = options->queues == OPTION_AUTO ? QUEUES_AUTO_MAX : (uint64_t)options->queues;
        uint64_t least = memory_for(queues, (uint64_t)options->queue_depth, options->max_io_size);
        uint64_t most = verdict->rule->options.resources.memory_max;
        char text[SIZE_TEXT_MAX];

        if (verdict->rule->options.waiting || options->resources.memory_max == 0
                || options->resources.memory_max >= least)
                return;
        format_size(least, text);
        policy_forbid(verdict, "/resources/memoryMax",
                "allows no resources.memoryMax below %s for these queues (\"waiting\"), because sync(2) of "
                "every process would wait for a worker that dies of it again and again; give %ssmaller "
                "queues, queueDepth and maxIoSize",
                text, most > 0 && most < least ? "" : "as much, or ");
}

/* ---- bursts ---- */

/* What may pass at once without a burst: the amount of a tenth of a second. */
static uint64_t burst_of(uint64_t rate, uint64_t burst)
{
        if (burst > 0)
                return burst;
        return rate < 10 ? 1 : rate / 10;
}

/* A rate with a burst of its own choice would be no limit. Without a rate, the rate itself is the fault. */
static void check_burst(struct policy_verdict *verdict, const char *direction, const char *name, bool bytes,
        uint64_t most_rate, uint64_t most_burst, uint64_t rate, uint64_t burst)
{
        uint64_t most = burst_of(most_rate, most_burst);
        char pointer[64], path[64], text[SIZE_TEXT_MAX];

        if (most_rate == 0 || rate == 0 || burst_of(rate, burst) <= most || (burst == 0 && rate > most_rate))
                return;
        snprintf(pointer, sizeof(pointer), "/limits/%s/%s", direction, name);
        print(most, bytes, text);
        print_path(pointer, path);
        policy_exceed(verdict, pointer, "allows %s of %s; give %s at most", path, text, text);
}

static void check_bursts(struct policy_verdict *verdict, const char *direction, const struct io_limits *most,
        const struct io_limits *limits)
{
        check_burst(verdict, direction, "iopsBurst", false, (uint64_t)most->iops, (uint64_t)most->iops_burst,
                (uint64_t)limits->iops, (uint64_t)limits->iops_burst);
        check_burst(verdict, direction, "bytesPerSecBurst", true, most->bytes_per_sec,
                most->bytes_per_sec_burst, limits->bytes_per_sec, limits->bytes_per_sec_burst);
}

void policy_ceilings_check(struct policy_verdict *verdict)
{
        const struct policy_rule_options *most = &verdict->rule->options;
        const struct device_options *options = &verdict->spec->options;

        check_queues(verdict);
        for (size_t i = 0; i < ARRAY_SIZE(ceilings); i++)
                check(verdict, &ceilings[i]);
        check_memory(verdict);
        check_bursts(verdict, "read", &most->limits.read, &options->limits.read);
        check_bursts(verdict, "write", &most->limits.write, &options->limits.write);
}
