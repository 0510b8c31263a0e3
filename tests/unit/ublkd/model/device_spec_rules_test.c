/* SPDX-License-Identifier: MIT */
/* The rules that depend on what a target can do, with targets made for it. */
#include "targets/known/known_targets.h"
#include "tests/unit/check.h"
#include "ublkd/model/device_spec.h"

struct odd_options {
        cJSON *child;
        char *offset; /* the name of a number elsewhere, a string here */
};

static const char *const ignored[] = {"type", NULL};
static const struct option_field odd_entries[] = {
        {.name = "child", .kind = OPTION_DOCUMENT, .offset = offsetof(struct odd_options, child)},
        {.name = "offset",
         .kind = OPTION_STRING,
         .offset = offsetof(struct odd_options, offset),
         .length_max = 9},
};
static const struct option_table odd_options_table = {
        .options = odd_entries,
        .count = ARRAY_SIZE(odd_entries),
        .struct_size = sizeof(struct odd_options),
        .ignored = ignored,
};

/* Cannot replay, and has one queue; contains another target. */
static const struct target_desc odd = {
        .name = "odd", .summary = "", .flags = TARGET_ONE_QUEUE, .options = &odd_options_table};
static const struct target_desc *const all[] = {&odd};
static const struct target_desc keeping = {.name = "keeping",
        .summary = "",
        .options = &odd_options_table,
        .kept_disk_bytes = 16 << 20,
        .kept_queue_bytes = 1 << 20};

const struct target_desc *known_target_find(const char *name)
{
        if (strcmp(name, keeping.name) == 0)
                return &keeping;
        return strcmp(name, odd.name) == 0 ? &odd : NULL;
}

const struct target_desc *const *known_targets_all(size_t *ret_count)
{
        *ret_count = ARRAY_SIZE(all);
        return all;
}

static struct device_spec *parse_with(const char *type, const char *members, struct problem_list *problems)
{
        struct device_spec *spec = NULL;
        char text[512];
        cJSON *json;
        int r;

        snprintf(text, sizeof(text), "{\"name\":\"a\",\"target\":{\"type\":\"%s\",\"offset\":\"7\"%s}", type,
                members);
        json = cJSON_Parse(text);
        CHECK(json);
        r = device_spec_parse(json, NULL, &spec, problems);
        CHECK_INT(r, problems->count > 0 ? -EINVAL : 0);
        cJSON_Delete(json);
        return spec;
}

static struct device_spec *parse(const char *members, struct problem_list *problems)
{
        return parse_with("odd", members, problems);
}

static void check_fault(const char *members, const char *pointer, const char *reason)
{
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_device_spec_ struct device_spec *spec = parse(members, &problems);

        CHECK(!spec);
        if (!CHECK_INT(problems.count, 1))
                return;
        CHECK_STR(problems.items[0].pointer, pointer);
        CHECK_STR(problems.items[0].reason, reason);
}

static void check_on_crash(const char *members, enum on_crash wanted)
{
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_device_spec_ struct device_spec *spec = parse(members, &problems);

        if (CHECK(spec))
                CHECK_INT(device_spec_on_crash(spec), wanted);
}

static void test_unknown_target(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct device_spec *spec = NULL;
        cJSON *json = cJSON_Parse("{\"name\":\"a\",\"target\":{\"type\":\"loop\"}}");

        CHECK_INT(device_spec_parse(json, NULL, &spec, &problems), -EINVAL);
        cJSON_Delete(json);
        if (CHECK_INT(problems.count, 1))
                CHECK_STR(problems.items[0].detail, "there is no such target; give \"odd\"");
}

static void test_children_compare(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_device_spec_ struct device_spec *one = parse(",\"child\":{\"a\":1,\"b\":2}}", &problems),
                                                 *same = parse(",\"child\":{\"b\":2,\"a\":1}}", &problems),
                                                 *other = parse(",\"child\":{\"b\":2}}", &problems);

        if (!CHECK(one && same && other))
                return;
        CHECK(device_spec_equal(one, same));
        CHECK(!device_spec_equal(one, other));
}

static void check_kept(const char *members, bool refused)
{
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_device_spec_ _unused_ struct device_spec *spec = parse_with("keeping", members, &problems);

        if (!CHECK_INT(problems.count, refused) || !refused)
                return;
        CHECK_STR(problems.items[0].pointer, "/resources/memoryMax");
        CHECK_STR(problems.items[0].reason, "KeptMemoryTooLarge");
}

/* The memory of the disk is 16 MiB, and that of each queue 1 MiB. */
static void test_kept_memory(void)
{
        check_kept("}", false);
        check_kept("},\"queues\":64", false);
        check_kept("},\"queues\":64,\"resources\":{\"cpuWeight\":50}", false);
        check_kept("},\"queues\":3,\"resources\":{\"memoryMax\":\"19MiB\"}", false);
        check_kept("},\"queues\":4,\"resources\":{\"memoryMax\":\"19MiB\"}", true);
        check_kept("},\"resources\":{\"memoryMax\":\"20MiB\"}", false);
        check_kept("},\"resources\":{\"memoryMax\":\"19MiB\"}", true); /* "auto": up to 4 */
}

int main(void)
{
        test_kept_memory();
        check_fault("},\"queues\":2", "/queues", "OneQueueOnly");
        check_fault("},\"recovery\":{\"onCrash\":\"reissue\"}", "/recovery/onCrash", "ReplayUnsafe");
        check_on_crash("},\"queues\":1", ON_CRASH_QUEUE);
        check_on_crash("},\"queues\":\"auto\"", ON_CRASH_QUEUE);
        check_on_crash("},\"recovery\":{\"onCrash\":\"none\"},\"blockSize\":4096", ON_CRASH_NONE);
        test_unknown_target();
        test_children_compare();
        return check_report();
}
