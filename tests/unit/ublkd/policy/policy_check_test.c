/* SPDX-License-Identifier: MIT */
/* policy_check: what a rule has against a spec. */
#include "ublkd/policy/policy_check.h"

#include "targets/null/null_options.h"
#include "tests/unit/ublkd/policy/policy_world.h"

#include <errno.h>

static const char pools[] =
        "\"pools\":{\"fast\":{\"directory\":\"/srv/fast\"},\"slow\":{\"directory\":\"/srv/slow\"}}";

/* A policy with one rule for user 1000. */
static void use(struct world *world, const char *rest)
{
        char text[4096];

        snprintf(text, sizeof(text), "{%s,\"rules\":[{\"name\":\"r\",\"who\":{\"users\":[1000]}%s%s}]}",
                pools, *rest ? "," : "", rest);
        world_use(world, text, 0);
}

static const struct target_desc *target; /* of the next spec in the place of its own; NULL: none */

static int check(
        struct world *world, const char *spec_text, struct policy_usage usage, struct problem_list *problems)
{
        struct policy_client client = client_of(1000, 1000);
        struct device_spec *spec = spec_of(spec_text);
        int r = -EBADMSG;

        if (spec && target)
                spec->tree->nodes[0].desc = spec->target = target;
        if (spec && CHECK(world->policy)) {
                r = policy_check(policy_rule_for(world->policy, &client), &client, spec, &usage, problems);
                CHECK_INT(r, problems->count > 0 ? -EPERM : 0);
        }
        device_spec_free(spec);
        return r;
}

static void check_good(struct world *world, const char *spec)
{
        _cleanup_problems_ struct problem_list problems = {};

        if (!CHECK_INT(check(world, spec, (struct policy_usage){}, &problems), 0))
                for (size_t i = 0; i < problems.count; i++)
                        fprintf(stderr, "    %s: %s\n", problems.items[i].pointer, problems.items[i].detail);
}

static void check_bad(struct world *world, const char *spec, const char *reason, const char *pointer)
{
        struct problem_list problems = {};

        CHECK_INT(check(world, spec, (struct policy_usage){}, &problems), -EPERM);
        check_one_problem(&problems, reason, pointer);
}

#define ROOM "\"devices\":3,\"size\":\"10GiB\",\"targets\":[\"null\",\"loop\"],\"pools\":[\"fast\"]"
#define NULL_DISK(more) "{\"name\":\"u1000-a\",\"target\":{\"type\":\"null\"},\"size\":\"1GiB\"" more "}"
#define LOOP_DISK(target) "{\"name\":\"u1000-a\",\"target\":{\"type\":\"loop\"" target "},\"size\":\"1GiB\"}"

static void test_a_rule_that_gives_nothing(struct world *world)
{
        _cleanup_problems_ struct problem_list problems = {};

        use(world, "");
        CHECK_INT(check(world, NULL_DISK(""), (struct policy_usage){}, &problems), -EPERM);
        if (!CHECK_INT(problems.count, 3))
                return;
        CHECK_STR(problems.items[0].pointer, "/target/type");
        CHECK_STR(problems.items[1].pointer, "");
        CHECK_STR(problems.items[1].reason, "PolicyExceeded");
        CHECK_STR(problems.items[2].pointer, "/size");
}

static void test_mounts(struct world *world)
{
        static const struct {
                const char *rest;
                int result;
        } cases[] = {
                {ROOM,                    -EPERM},
                {ROOM ",\"mount\":false", -EPERM},
                {ROOM ",\"mount\":true",  0     },
        };
        struct policy_client client = client_of(1000, 1000);

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct problem_list problems = {};

                use(world, cases[i].rest);
                CHECK_INT(policy_check_mount(policy_rule_for(world->policy, &client), &problems),
                        cases[i].result);
                if (cases[i].result < 0)
                        check_one_problem(&problems, "PolicyForbids", "");
                else
                        problem_list_clear(&problems);
        }
}

static void test_targets(struct world *world)
{
        use(world, "\"devices\":1,\"size\":\"10GiB\",\"targets\":[\"null\"],\"pools\":[\"fast\"]");
        check_good(world, NULL_DISK(""));
        check_bad(world, LOOP_DISK(",\"pool\":\"fast\""), "PolicyForbids", "/target/type");
}

static void test_stores(struct world *world)
{
        use(world, ROOM);
        check_good(world, LOOP_DISK(",\"pool\":\"fast\""));
        check_good(world,
                LOOP_DISK(",\"pool\":\"fast\",\"path\":\"/srv/fast/a-1.img\"")); /* the API compares it */
        check_bad(world, LOOP_DISK(",\"pool\":\"slow\""), "PolicyForbids", "/target/pool");
        check_bad(world, LOOP_DISK(",\"path\":\"/etc/shadow\""), "PolicyForbids", "/target/path");
        check_bad(world, LOOP_DISK(",\"pool\":\"fast\",\"keep\":true"), "PolicyForbids", "/target/keep");
        check_good(world, LOOP_DISK(",\"pool\":\"fast\",\"keep\":false"));
        use(world, "\"devices\":3,\"size\":\"10GiB\",\"targets\":[\"loop\"]");
        check_bad(world, LOOP_DISK(",\"pool\":\"fast\""), "PolicyForbids", "/target/pool");
}

static void test_directories(struct world *world)
{
        static const char *const good[] = {"/home/alice/a.img", "/home/alice/b/c", "/srv/a"};
        static const char *const bad[] = {"/home/alice", "/home/alice/", "/home/alicea/x",
                "/home/alice/../bob/x", "/home/alice/./x", "/home/alice//x", "//home/alice/x", "/home/bob/x",
                "/dev/sda", "/proc/self/fd/3"};
        char spec[256];

        use(world, ROOM ",\"directories\":[\"/home/alice\",\"/srv\"]");
        check_good(world, LOOP_DISK(",\"pool\":\"fast\""));
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
                snprintf(spec, sizeof(spec), LOOP_DISK(",\"path\":\"%s\""), good[i]);
                check_good(world, spec);
        }
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                snprintf(spec, sizeof(spec), LOOP_DISK(",\"path\":\"%s\""), bad[i]);
                check_bad(world, spec, "PolicyForbids", "/target/path");
        }
        check_bad(
                world, LOOP_DISK(",\"pool\":\"slow\",\"path\":\"/srv/a\""), "PolicyForbids", "/target/pool");
        use(world, "\"devices\":1,\"size\":\"1GiB\",\"targets\":[\"loop\"],\"directories\":[\"/\"]");
        check_good(world, LOOP_DISK(",\"path\":\"/a\""));
        check_bad(world, LOOP_DISK(",\"path\":\"/a/../b\""), "PolicyForbids", "/target/path");
}

/* Another target above makes nothing reachable that is not so alone. */
static void test_targets_below_others(struct world *world)
{
#define DISK(target) "{\"name\":\"u1000-a\",\"size\":\"1GiB\",\"target\":" target "}"
#define PART(child) "{\"type\":\"linear\",\"child\":" child "}"
#define STRIPE(children) "{\"type\":\"stripe\",\"children\":[" children "]}"
#define LOOP(path) "{\"type\":\"loop\",\"path\":\"" path "\"}"
        static const char all[] =
                "\"devices\":3,\"size\":\"10GiB\",\"targets\":[\"linear\",\"loop\",\"null\",\"stripe\"],"
                "\"directories\":[\"/home/alice\"]";

        use(world, all);
        check_good(world, DISK(PART(LOOP("/home/alice/a.img"))));
        check_good(
                world, DISK("{\"type\":\"stripe\",\"children\":[{\"type\":\"null\"},{\"type\":\"null\"}]}"));
        /* Several stores, whosever they are, also one in a list. */
        check_bad(world, DISK(STRIPE(LOOP("/home/alice/a.img") "," LOOP("/home/alice/b.img"))),
                "PolicyForbids", "/target");
        check_bad(world, DISK(STRIPE("{\"type\":\"null\"}," LOOP("/home/alice/a.img"))), "PolicyForbids",
                "/target");
        check_bad(world, DISK(PART(STRIPE(LOOP("/home/alice/a.img") "," LOOP("/dev/sda")))), "PolicyForbids",
                "/target");
        check_bad(world, DISK(PART(LOOP("/etc/shadow"))), "PolicyForbids", "/target/child/path");
        check_bad(world, DISK(PART(PART(LOOP("/home/alice/../bob/a.img")))), "PolicyForbids",
                "/target/child/child/path");
        check_bad(world, DISK(PART(PART(LOOP("/dev/sda")))), "PolicyForbids", "/target/child/child/path");
        use(world, "\"devices\":3,\"size\":\"10GiB\",\"targets\":[\"linear\"],\"directories\":[\"/home/"
                   "alice\"]");
        check_bad(world, DISK(PART(LOOP("/home/alice/a.img"))), "PolicyForbids", "/target/child/type");
        use(world, "\"devices\":3,\"size\":\"10GiB\",\"targets\":[\"linear\",\"null\"]");
        check_bad(world,
                DISK(PART("{\"type\":\"stripe\",\"children\":[{\"type\":\"null\"},{\"type\":\"null\"}]}")),
                "PolicyForbids", "/target/child/type");
        /* A target for tests, also if the rule lists it. */
        use(world, "\"devices\":3,\"size\":\"10GiB\",\"targets\":[\"fault\",\"linear\",\"null\"]");
        check_bad(world, DISK("{\"type\":\"fault\",\"child\":{\"type\":\"null\"}}"), "PolicyForbids",
                "/target/type");
        check_bad(world, DISK(PART("{\"type\":\"fault\",\"child\":{\"type\":\"null\"}}")), "PolicyForbids",
                "/target/child/type");
#undef LOOP
#undef STRIPE
#undef PART
#undef DISK
}

static void check_usage(struct world *world, uint64_t devices, uint64_t bytes, const char *pointer)
{
        struct problem_list problems = {};

        CHECK_INT(check(world, NULL_DISK(""), (struct policy_usage){devices, bytes}, &problems),
                pointer ? -EPERM : 0);
        if (pointer)
                check_one_problem(&problems, "PolicyExceeded", pointer);
}

static void test_how_much(struct world *world)
{
        const uint64_t gib = UINT64_C(1) << 30;

        use(world, ROOM);
        check_usage(world, 0, 0, NULL);
        check_usage(world, 2, 9 * gib, NULL);
        check_usage(world, 3, 0, "");
        check_usage(world, UINT64_MAX, 0, "");
        check_usage(world, 2, 9 * gib + 1, "/size");
        check_usage(world, 2, 11 * gib, "/size"); /* the rule was another one before */
        check_usage(world, 2, UINT64_MAX, "/size");
}

/* It lies in memory of the host, so it counts as if the disk was larger. */
static void test_kept_memory(struct world *world)
{
        static const struct target_desc keeping = {.name = "null",
                .options = &null_options_table,
                .kept_disk_bytes = 5 << 20,
                .kept_queue_bytes = 1 << 20};
        static const struct {
                const char *spec;
                uint64_t kept;
        } cases[] = {
                {NULL_DISK(",\"queues\":1"), 6},
                {NULL_DISK(",\"queues\":3"), 8},
                {NULL_DISK(""),              9}, /* on a machine with four CPUs or more */
        };

        use(world, ROOM);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct policy_usage usage = {2, (UINT64_C(9) << 30) - (cases[i].kept << 20)};
                struct problem_list problems = {};

                target = &keeping;
                CHECK_INT(check(world, cases[i].spec, usage, &problems), 0);
                usage.bytes++;
                CHECK_INT(check(world, cases[i].spec, usage, &problems), -EPERM);
                check_one_problem(&problems, "PolicyExceeded", "/size");
                target = NULL;
                CHECK_INT(check(world, cases[i].spec, usage, &problems), 0);
        }
}

static void test_what_is_free_has_bounds(struct world *world)
{
        char spec[2048];

        use(world, ROOM);
        check_bad(world, NULL_DISK(",\"recovery\":{\"onCrash\":\"none\"}"), "PolicyForbids",
                "/recovery/onCrash");
        check_bad(world,
                NULL_DISK(",\"isolation\":\"kernel\",\"recovery\":{\"onCrash\":\"none\"},\"owner\":{\"gid\":"
                          "1}"),
                "PolicyForbids", "/isolation");
        check_good(world, NULL_DISK(",\"recovery\":{\"onCrash\":\"fail\"},\"labels\":{\"a\":\"b\"}"));
        snprintf(spec, sizeof(spec),
                NULL_DISK(",\"labels\":{\"a\":\"%0250d\",\"b\":\"%0250d\",\"c\":\"%0250d\",\"d\":\"%0250d\","
                          "\"e\":\"%0250d\"}"),
                1, 2, 3, 4, 5);
        check_bad(world, spec, "PolicyExceeded", "/labels");
}

/* sync(2) of every process waits for them. */
static void test_disks_that_wait(struct world *world)
{
        use(world, ROOM);
        check_bad(world, NULL_DISK(",\"onFull\":\"wait\""), "PolicyForbids", "/onFull");
        check_bad(world, NULL_DISK(",\"recovery\":{\"trigger\":\"manual\",\"giveUpAfter\":\"1h\"}"),
                "PolicyForbids", "/recovery/trigger");
        check_bad(world, NULL_DISK(",\"recovery\":{\"trigger\":\"manual\",\"onCrash\":\"queue\"}"),
                "PolicyForbids", "/recovery/trigger");
        check_good(world, NULL_DISK(",\"recovery\":{\"trigger\":\"manual\",\"onCrash\":\"fail\"}"));
        check_good(world, NULL_DISK(",\"onFull\":\"error\",\"recovery\":{\"trigger\":\"auto\"}"));
        use(world, ROOM ",\"waiting\":true");
        check_good(world, NULL_DISK(",\"onFull\":\"wait\",\"recovery\":{\"trigger\":\"manual\"}"));
}

static void test_names(struct world *world)
{
        use(world, ROOM);
        check_bad(world, "{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":\"1GiB\"}",
                "PolicyForbids", "/name");
        check_bad(world, "{\"name\":\"u1000a\",\"target\":{\"type\":\"null\"},\"size\":\"1GiB\"}",
                "PolicyForbids", "/name");
        check_bad(world, "{\"name\":\"u10001-a\",\"target\":{\"type\":\"null\"},\"size\":\"1GiB\"}",
                "PolicyForbids", "/name");
        use(world, ROOM ",\"namePrefix\":\"alice\"");
        check_good(world, "{\"name\":\"alice\",\"target\":{\"type\":\"null\"},\"size\":\"1GiB\"}");
}

static void test_numbers(struct world *world)
{
        use(world, ROOM);
        check_bad(world, NULL_DISK(",\"id\":0"), "PolicyForbids", "/id");
        use(world, ROOM ",\"ids\":\"100-199\"");
        check_good(world, NULL_DISK(""));
        check_good(world, NULL_DISK(",\"id\":100"));
        check_good(world, NULL_DISK(",\"id\":199"));
        check_bad(world, NULL_DISK(",\"id\":99"), "PolicyForbids", "/id");
        check_bad(world, NULL_DISK(",\"id\":200"), "PolicyForbids", "/id");
}

static void test_what_only_administrators_have(struct world *world)
{
        use(world, ROOM);
        check_bad(world, NULL_DISK(",\"owner\":{}"), "PolicyForbids", "/owner");
        check_bad(world, NULL_DISK(",\"owner\":{\"uid\":1000}"), "PolicyForbids", "/owner");
        check_bad(world, NULL_DISK(",\"cpus\":\"0\""), "PolicyForbids", "/cpus");
        check_bad(world, NULL_DISK(",\"busyPollUs\":1"), "PolicyExceeded", "/busyPollUs");
        use(world, ROOM ",\"cpus\":\"2-3,8\",\"busyPollUs\":50");
        check_good(world, NULL_DISK(",\"cpus\":\"3,8\",\"busyPollUs\":50"));
        check_bad(world, NULL_DISK(",\"cpus\":\"2-4\""), "PolicyForbids", "/cpus");
        check_bad(world, NULL_DISK(",\"busyPollUs\":51"), "PolicyExceeded", "/busyPollUs");
}

static void test_what_is_free(struct world *world)
{
        use(world, ROOM);
        check_good(world,
                NULL_DISK(
                        ",\"recovery\":{\"hangAfter\":\"5m\",\"giveUpAfter\":\"10m\",\"onCrash\":\"queue\"},"
                        "\"labels\":{\"a\":\"b\"},\"readOnly\":true,\"temporary\":true,\"enabled\":false"));
}

static void test_all_faults_at_once(struct world *world)
{
        _cleanup_problems_ struct problem_list problems = {};

        use(world, ROOM);
        CHECK_INT(check(world,
                          "{\"name\":\"x\",\"target\":{\"type\":\"loop\",\"path\":\"/"
                          "a\"},\"id\":1,\"owner\":{},\"cpus\":\"0\","
                          "\"queues\":64,\"queueDepth\":4096,\"maxIoSize\":\"2MiB\",\"busyPollUs\":1}",
                          (struct policy_usage){.devices = 3}, &problems),
                -EPERM);
        CHECK_INT(problems.count, 11);
}

int main(void)
{
        struct world world;

        world_open(&world);
        test_a_rule_that_gives_nothing(&world);
        test_targets(&world);
        test_stores(&world);
        test_mounts(&world);
        test_directories(&world);
        test_targets_below_others(&world);
        test_how_much(&world);
        test_kept_memory(&world);
        test_what_is_free_has_bounds(&world);
        test_disks_that_wait(&world);
        test_names(&world);
        test_numbers(&world);
        test_what_only_administrators_have(&world);
        test_what_is_free(&world);
        test_all_faults_at_once(&world);
        world_close(&world);
        return check_report();
}
