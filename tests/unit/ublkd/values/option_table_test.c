/* SPDX-License-Identifier: MIT */
/* Defaults, comparison and names of option tables. */
#include "tests/unit/check.h"
#include "ublkd/values/dispatch.h"

#include <stddef.h>

struct sample {
        char *path;
        uint64_t size;
        struct {
                int64_t depth;
        } inner;
        cJSON *labels;
};

static const struct option_field inner_options[] = {
        {.name = "depth",
         .kind = OPTION_INTEGER,
         .offset = 0,
         .minimum = 1,
         .maximum = 9,
         .preset.integer = 3},
};
static const struct option_table inner_table = {
        .options = inner_options,
        .count = ARRAY_SIZE(inner_options),
        .struct_size = sizeof(int64_t),
};
static const char *const ignored[] = {"type", NULL};
static const struct option_field options[] = {
        {.name = "path",
         .kind = OPTION_STRING,
         .offset = offsetof(struct sample, path),
         .length_max = 99,
         .preset.string = "/x"},
        {.name = "size", .kind = OPTION_BYTES, .offset = offsetof(struct sample, size), .maximum = INT64_MAX},
        {.name = "inner",
         .kind = OPTION_OBJECT,
         .offset = offsetof(struct sample, inner),
         .table = &inner_table},
        {.name = "labels",
         .kind = OPTION_STRING_MAP,
         .offset = offsetof(struct sample, labels),
         .length_max = 9,
         .value_length_max = 9},
};
static const struct option_table table = {
        .options = options,
        .count = ARRAY_SIZE(options),
        .struct_size = sizeof(struct sample),
        .ignored = ignored,
};

/* The first option in which the two texts differ, or NULL. */
static const char *difference(const char *one, const char *other)
{
        _cleanup_problems_ struct problem_list problems = {};
        const char *texts[] = {one, other}, *name = NULL;
        struct sample samples[2];
        bool equal;

        for (size_t i = 0; i < 2; i++) {
                cJSON *json = cJSON_Parse(texts[i]);

                CHECK_INT(dispatch(json, &table, "", &samples[i], &problems), 0);
                cJSON_Delete(json);
        }
        equal = dispatch_equal(&samples[0], &samples[1], &table, &name);
        CHECK_INT(equal, name == NULL);
        CHECK_INT(dispatch_equal(&samples[0], &samples[1], &table, NULL), equal);
        dispatch_release(&samples[0], &table);
        dispatch_release(&samples[1], &table);
        return name;
}

static void test_equal(void)
{
        CHECK_STR(difference("{}", "{}"), NULL);
        CHECK_STR(difference("{}", "{\"path\":\"/x\",\"size\":0,\"inner\":{},\"labels\":{}}"), NULL);
        CHECK_STR(difference("{\"size\":\"1KiB\"}", "{\"size\":1024}"), NULL);
        CHECK_STR(difference("{\"inner\":{\"depth\":3}}", "{}"), NULL);
        CHECK_STR(difference(
                          "{\"labels\":{\"a\":\"1\",\"b\":\"2\"}}", "{\"labels\":{\"b\":\"2\",\"a\":\"1\"}}"),
                NULL);
        CHECK_STR(difference("{\"path\":\"/y\"}", "{}"), "path");
        CHECK_STR(difference("{\"size\":1}", "{\"size\":2}"), "size");
        CHECK_STR(difference("{\"inner\":{\"depth\":4}}", "{}"), "inner");
        CHECK_STR(difference("{\"labels\":{\"a\":\"1\"}}", "{}"), "labels");
        CHECK_STR(difference("{\"labels\":{\"a\":\"1\"}}", "{\"labels\":{\"A\":\"1\"}}"), "labels");
        CHECK_STR(difference("{\"path\":\"/y\",\"size\":1}", "{}"), "path");
}

static void test_names(void)
{
        CHECK(option_find(&table, "size") == &options[1]);
        CHECK(!option_find(&table, "Size"));
        CHECK(!option_find(&table, "type"));
        CHECK_INT(option_index(&table, "size"), 1);
        CHECK_INT(option_index(&table, "type"), 4);
        CHECK_INT(option_index(&table, ""), -1);
        CHECK_STR(option_suggest(&table, "Size"), "size");
        CHECK_STR(option_suggest(&table, "sizes"), "size");
        CHECK_STR(option_suggest(&table, "label"), "labels");
        CHECK_STR(option_suggest(&table, "sides"), NULL);
        CHECK_STR(option_suggest(&table, ""), NULL);
        CHECK_STR(option_suggest(&table, "a name that is far longer than any that there is"), NULL);
}

static void test_defaults(void)
{
        struct sample sample;

        memset(&sample, 0xa5, sizeof(sample));
        CHECK_INT(option_defaults(&table, &sample), 0);
        CHECK_STR(sample.path, "/x");
        CHECK_INT(sample.size, 0);
        CHECK_INT(sample.inner.depth, 3);
        CHECK(!sample.labels);
        dispatch_release(&sample, &table);
        CHECK(!sample.path);
}

int main(void)
{
        test_equal();
        test_names();
        test_defaults();
        return check_report();
}
