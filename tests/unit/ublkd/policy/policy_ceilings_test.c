/* SPDX-License-Identifier: MIT */
/* policy_ceilings: each number of a spec beside the one of the rule. */
#include "ublkd/policy/policy_ceilings.h"

#include "tests/unit/ublkd/policy/policy_world.h"

#include <errno.h>

/* Check one spec by one rule. reason NULL: it is good. */
static void check(
        struct world *world, const char *rule, const char *spec_rest, const char *reason, const char *pointer)
{
        struct problem_list problems = {};
        struct policy_client client = client_of(1000, 1000);
        struct device_spec *spec;
        char text[512];

        snprintf(text, sizeof(text), "{\"name\":\"u1000-a\",\"target\":{\"type\":\"null\"},\"size\":512%s%s}",
                *spec_rest ? "," : "", spec_rest);
        spec = spec_of(text);
        world_use_rule(world, rule, 0);
        if (spec && world->policy) {
                struct policy_verdict verdict = {.rule = &world->policy->rules[0],
                        .client = &client,
                        .spec = spec,
                        .problems = &problems};

                policy_ceilings_check(&verdict);
                if (!CHECK_INT(verdict.error, reason ? -EPERM : 0))
                        fprintf(stderr, "    %s, %s\n", rule, spec_rest);
                if (reason)
                        check_one_problem(&problems, reason, pointer);
        }
        problem_list_clear(&problems);
        device_spec_free(spec);
}

static void good(struct world *world, const char *rule, const char *spec)
{
        check(world, rule, spec, NULL, NULL);
}

static void exceeded(struct world *world, const char *rule, const char *spec, const char *pointer)
{
        check(world, rule, spec, "PolicyExceeded", pointer);
}

static void forbidden(struct world *world, const char *rule, const char *spec, const char *pointer)
{
        check(world, rule, spec, "PolicyForbids", pointer);
}

static void required(struct world *world, const char *rule, const char *spec, const char *pointer)
{
        check(world, rule, spec, "PolicyRequires", pointer);
}

/* A rule without numbers has the defaults of a spec. */
static void test_queues(struct world *world)
{
        good(world, "", "");
        good(world, "", "\"queues\":4,\"queueDepth\":128,\"maxIoSize\":\"1MiB\"");
        exceeded(world, "", "\"queues\":5", "/queues");
        exceeded(world, "", "\"queueDepth\":129", "/queueDepth");
        exceeded(world, "", "\"maxIoSize\":\"2MiB\"", "/maxIoSize");
        exceeded(world, "\"queues\":2", "", "/queues"); /* it could become 4 */
        exceeded(world, "\"queues\":2", "\"queues\":\"auto\"", "/queues");
        good(world, "\"queues\":2", "\"queues\":2");
        good(world, "\"queues\":8", "\"queues\":8");
        exceeded(world, "\"queueDepth\":64", "", "/queueDepth"); /* the default is 128 */
        good(world, "\"queueDepth\":64", "\"queueDepth\":64");
        exceeded(world, "\"maxIoSize\":\"64KiB\"", "", "/maxIoSize");
}

#define READ(text) "\"limits\":{\"read\":{" text "}}"
#define WRITE(text) "\"limits\":{\"write\":{" text "}}"

static void test_limits(struct world *world)
{
        static const char both[] = READ("\"iops\":1000,\"bytesPerSec\":\"10MiB\"");

        good(world, "", READ("\"iops\":10000000"));
        good(world, both, both);
        required(world, both, READ("\"iops\":1000"), "/limits/read/bytesPerSec");
        exceeded(world, both, READ("\"iops\":1001,\"bytesPerSec\":\"10MiB\""), "/limits/read/iops");
        required(world, WRITE("\"bytesPerSec\":\"1MiB\""), "", "/limits/write/bytesPerSec");
        required(world, WRITE("\"iops\":7"), "", "/limits/write/iops");
        required(world, WRITE("\"iops\":7"), READ("\"iops\":7000"), "/limits/write/iops");
}

/* Without a burst it is that of a tenth of a second. */
static void test_bursts(struct world *world)
{
        static const char iops[] = READ("\"iops\":1000"), bytes[] = WRITE("\"bytesPerSec\":\"10MiB\"");
        static const char burst[] = READ("\"iops\":20000,\"iopsBurst\":500");

        good(world, iops, READ("\"iops\":1000,\"iopsBurst\":100"));
        exceeded(world, iops, READ("\"iops\":1000,\"iopsBurst\":101"), "/limits/read/iopsBurst");
        good(world, bytes, WRITE("\"bytesPerSec\":\"10MiB\",\"bytesPerSecBurst\":\"1MiB\""));
        exceeded(world, bytes, WRITE("\"bytesPerSec\":\"1MiB\",\"bytesPerSecBurst\":\"2MiB\""),
                "/limits/write/bytesPerSecBurst");
        exceeded(world, burst, READ("\"iops\":20000"), "/limits/read/iopsBurst");
        exceeded(world, iops, READ("\"iops\":50000"), "/limits/read/iops"); /* one fault, not two */
        good(world, burst, READ("\"iops\":5000"));
        good(world, burst, burst);
}

#define MAX_OF(direction, text) "\"resources\":{\"ioMax\":{\"" direction "\":{" text "}}}"

/* A flush of all disks of the host waits for the slowest. Only a rule makes one slower. */
static void test_a_limit_of_its_own_choice_is_not_too_low(struct world *world)
{
        static const char low[] = WRITE("\"bytesPerSec\":\"512KiB\"");

        forbidden(world, "", WRITE("\"bytesPerSec\":1024"), "/limits/write/bytesPerSec");
        forbidden(world, "", WRITE("\"bytesPerSec\":1048575"), "/limits/write/bytesPerSec");
        good(world, "", WRITE("\"bytesPerSec\":1048576"));
        forbidden(world, "", READ("\"bytesPerSec\":1024"), "/limits/read/bytesPerSec");
        forbidden(world, "", READ("\"iops\":1023"), "/limits/read/iops");
        forbidden(world, "", WRITE("\"iops\":1"), "/limits/write/iops");
        good(world, "", WRITE("\"iops\":1024"));
        forbidden(world, "", MAX_OF("write", "\"bytesPerSec\":1024"), "/resources/ioMax/write/bytesPerSec");
        forbidden(world, "", MAX_OF("read", "\"iops\":1"), "/resources/ioMax/read/iops");
        good(world, "", MAX_OF("read", "\"iops\":1024,\"bytesPerSec\":\"1MiB\""));
        forbidden(world, WRITE("\"iops\":2000"), WRITE("\"iops\":1023"), "/limits/write/iops");
        forbidden(world, WRITE("\"iops\":1000"), WRITE("\"iops\":999"), "/limits/write/iops");
        good(world, WRITE("\"iops\":1000"), WRITE("\"iops\":1000"));
        good(world, low, low);
        forbidden(world, low, WRITE("\"bytesPerSec\":\"511KiB\""), "/limits/write/bytesPerSec");
        exceeded(world, low, WRITE("\"bytesPerSec\":\"1MiB\""), "/limits/write/bytesPerSec");
}

#define MEMORY(text) "\"resources\":{\"memoryMax\":\"" text "\"}"
#define QUEUES(queues, depth, size)                                                                          \
        "\"queues\":" queues ",\"queueDepth\":" depth ",\"maxIoSize\":\"" size "\","

/* A worker that dies of it over and over lets no flush end. It has the bytes of all requests, and 16 MiB. */
static void test_a_worker_has_enough_memory(struct world *world)
{
        static const char pointer[] = "/resources/memoryMax";

        forbidden(world, "", MEMORY("16MiB"), pointer);
        forbidden(world, "", MEMORY("527MiB"), pointer); /* 4 queues of 128 requests of 1 MiB */
        good(world, "", MEMORY("528MiB"));
        good(world, "", QUEUES("1", "64", "64KiB") MEMORY("20MiB"));
        forbidden(world, "", QUEUES("1", "64", "64KiB") MEMORY("19MiB"), pointer);
        good(world, "", QUEUES("2", "128", "4KiB") MEMORY("17MiB"));
        forbidden(world, MEMORY("100MiB"), MEMORY("100MiB"),
                pointer); /* what it allows is not enough for that many */
        good(world, MEMORY("100MiB"), QUEUES("1", "64", "1MiB") MEMORY("100MiB"));
        good(world, "\"waiting\":true", MEMORY("16MiB"));
        CHECK_INT(policy_ceilings_least_memory(), 16388 << 10); /* a spec has no smaller queues */
        good(world, MEMORY("16388KiB"), QUEUES("1", "1", "4KiB") MEMORY("16388KiB"));
        forbidden(world, MEMORY("16387KiB"), QUEUES("1", "1", "4KiB") MEMORY("16387KiB"), pointer);
}

#define RESOURCES(weight, memory, pids, iops)                                                                \
        "\"resources\":{\"cpuWeight\":" weight ",\"memoryMax\":" memory ",\"pidsMax\":" pids                 \
        ",\"ioMax\":{\"write\":{\"iops\":" iops "}}}"
#define IO_MAX(bytes) "\"resources\":{\"ioMax\":{\"read\":{\"iops\":1,\"bytesPerSec\":" bytes "}}}"

static void test_resources(struct world *world)
{
        static const char share[] = RESOURCES("50", "\"1GiB\"", "100", "9");

        good(world, share, share);
        good(world, share, RESOURCES("1", "\"528MiB\"", "64", "9"));
        exceeded(world, share, RESOURCES("51", "\"1GiB\"", "100", "9"), "/resources/cpuWeight");
        exceeded(world, share, RESOURCES("50", "\"2GiB\"", "100", "9"), "/resources/memoryMax");
        exceeded(world, share, RESOURCES("50", "\"1GiB\"", "101", "9"), "/resources/pidsMax");
        exceeded(world, share, RESOURCES("50", "\"1GiB\"", "100", "10"), "/resources/ioMax/write/iops");
        exceeded(world, IO_MAX("1024"), IO_MAX("1025"), "/resources/ioMax/read/bytesPerSec");
        required(world, "\"resources\":{\"cpuWeight\":50}", "", "/resources/cpuWeight");
}

/* Every number of the limits and resources of a spec has a row: with a ceiling of 1 for each, each absent one is reported. */
static void test_no_field_is_left_out(struct world *world)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct policy_client client = client_of(1000, 1000);
        struct device_spec *spec = spec_of("{\"name\":\"a\",\"target\":{\"type\":\"null\"},\"size\":512}");
        struct policy_verdict verdict = {.client = &client, .spec = spec, .problems = &problems};

        world_use_rule(world, "", 0);
        memset(&world->policy->rules[0].options.limits, 1, sizeof(world->policy->rules[0].options.limits));
        memset(&world->policy->rules[0].options.resources, 1,
                sizeof(world->policy->rules[0].options.resources));
        verdict.rule = &world->policy->rules[0];
        policy_ceilings_check(&verdict);
        CHECK_INT(problems.count,
                (sizeof(verdict.rule->options.limits) + sizeof(verdict.rule->options.resources)) / 8
                        - 4 /* bursts */);
        device_spec_free(spec);
}

int main(void)
{
        struct world world;

        world_open(&world);
        test_queues(&world);
        test_limits(&world);
        test_bursts(&world);
        test_a_limit_of_its_own_choice_is_not_too_low(&world);
        test_a_worker_has_enough_memory(&world);
        test_resources(&world);
        test_no_field_is_left_out(&world);
        world_close(&world);
        return check_report();
}
