/* SPDX-License-Identifier: MIT */
/* declared_set: which file counts, where a fault is, and what is unknown. */
#include "ublkd/declared/declared_set.h"

#include "tests/unit/check.h"

#include <stdlib.h>

static struct device_dir dirs[] = {
        {.path = (char *)"/etc/d", .state = DIR_READ   },
        {.path = (char *)"/run/d", .state = DIR_MISSING}
};

#define FILE_OF(place, content)                                                                              \
        {.path = (char *)(place), .state = FILE_READ, .text = (char *)(content), .size = strlen(content)}
#define SPEC(name) "{\"name\":\"" name "\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\"}"

static void make(
        struct device_file *items, size_t count, struct device_files *files, struct declared_set *ret)
{
        *files = (struct device_files){.dirs = dirs, .dir_count = 2, .items = items, .count = count};
        CHECK_INT(declared_set_make(files, NULL, NULL, ret), 0);
}

static void test_forms(void)
{
        struct device_file items[] = {
                FILE_OF("/etc/d/a.json", SPEC("one")),
                FILE_OF("/etc/d/b.json", "[" SPEC("two") ",\n" SPEC("three") "]"),
                FILE_OF("/etc/d/c.json", "{\"items\":[{\"name\":\"x\",\"spec\":" SPEC("four") "}]}"),
        };
        _cleanup_declared_set_ struct declared_set set = {};
        struct device_files files;
        const struct declaration *three;

        make(items, 3, &files, &set);
        CHECK_INT(set.count, 4);
        CHECK_INT(set.problems.count, 0);
        three = declared_set_find(&set, "three");
        if (CHECK(three && three->spec)) {
                CHECK_STR(three->file->path, "/etc/d/b.json");
                CHECK_INT(three->line, 2);
        }
        CHECK(declared_set_find(&set, "four") != NULL);
        CHECK(declared_set_find(&set, "x") == NULL);
}

static bool has(const struct declared_set *set, const char *reason, const char *start, const char *pointer)
{
        for (size_t i = 0; i < set->problems.count; i++)
                if (strcmp(set->problems.items[i].reason, reason) == 0
                        && strncmp(set->problems.items[i].detail, start, strlen(start)) == 0
                        && strcmp(set->problems.items[i].pointer, pointer) == 0)
                        return true;
        for (size_t i = 0; i < set->problems.count; i++)
                fprintf(stderr, "  %s (%s)\n", set->problems.items[i].detail, set->problems.items[i].pointer);
        return false;
}

static void test_faults_have_line_and_pointer(void)
{
        struct device_file items[] = {
                FILE_OF("/etc/d/a.json", "{\"name\":\"a\",\n\"target\":{\"type\":\"null\"},\n\"size\":"
                                         "\"1MiB\",\n\"queues\":-1}"),
                FILE_OF("/etc/d/b.json", "{\n\"name\": \"b\",,\n}"),
                FILE_OF("/etc/d/c.json",
                        "[\n" SPEC("good") ",\n{\"name\":\"c\",\n \"target\":{\n\"type\":\"nothing\"}}]"),
                FILE_OF("/etc/d/d.json", "[17]"),
        };
        _cleanup_declared_set_ struct declared_set set = {};
        struct device_files files;

        make(items, 4, &files, &set);
        CHECK(has(&set, "FileInvalid", "/etc/d/a.json:4: /queues: ", "/queues"));
        CHECK(has(&set, "FileInvalid", "/etc/d/b.json:2: ", ""));
        CHECK(has(&set, "FileInvalid", "/etc/d/c.json:5: /1/target/type: ", "/1/target/type"));
        CHECK(has(&set, "FileInvalid", "/etc/d/d.json:1: /0: ", "/0"));
        CHECK(declared_set_find(&set, "good") && declared_set_find(&set, "good")->spec); /* others apply */
        CHECK(declared_set_find(&set, "a") && !declared_set_find(&set, "a")->spec);
        CHECK(declared_set_find(&set, "a")->fault != NULL);
        /* What such a file described before is unknown. */
        for (size_t i = 0; i < 4; i++)
                CHECK(declared_set_unknown(&set, items[i].path) != NULL);
}

static void test_two_files_with_one_name(void)
{
        struct device_file items[] = {
                FILE_OF("/etc/d/a.json", SPEC("x")),
                FILE_OF("/etc/d/b.json", "[\n" SPEC("y") ",\n" SPEC("x") "]"),
                FILE_OF("/etc/d/c.json", "{\"name\":\"z\"}"), /* invalid, and still the first */
                FILE_OF("/etc/d/d.json", SPEC("z")),
        };
        _cleanup_declared_set_ struct declared_set set = {};
        struct device_files files;

        make(items, 4, &files, &set);
        CHECK_STR(declared_set_find(&set, "x")->file->path, "/etc/d/a.json");
        CHECK(has(&set, "FileRefused", "/etc/d/b.json:3: ", "/name"));
        CHECK(!declared_set_find(&set, "z")->spec);
        CHECK(has(&set, "FileRefused", "/etc/d/d.json:1: ", "/name"));
        CHECK(declared_set_unknown(&set, "/etc/d/b.json") == NULL); /* it can be read */
}

static void test_what_is_unknown(void)
{
        struct device_file items[] = {
                FILE_OF("/etc/d/a.json", SPEC("x")),
                {.path = (char *)"/etc/d/bad.json",
                                              .state = FILE_FAULTY,
                                              .fault = (char *)"It cannot be read."},
                {.path = (char *)"/etc/d/mask.json", .state = FILE_MASKED},
        };
        _cleanup_declared_set_ struct declared_set set = {};
        struct device_files files;
        char fault[] = "The directory cannot be read.";

        make(items, 3, &files, &set);
        CHECK(declared_set_unknown(&set, "/etc/d/gone.json") == NULL);
        CHECK(declared_set_unknown(&set, "/etc/d/mask.json") == NULL);
        CHECK(declared_set_unknown(&set, "/etc/d/bad.json") != NULL);
        CHECK(declared_set_unknown(&set, "/run/d/gone.json") != NULL);   /* its directory is missing */
        CHECK(declared_set_unknown(&set, "/other/d/gone.json") != NULL); /* ublkd does not read that */
        CHECK(declared_set_unknown(&set, "/etc/d/deeper/gone.json") != NULL);
        dirs[1] = (struct device_dir){.path = dirs[1].path, .state = DIR_FAULTY, .fault = fault};
        CHECK(declared_set_unknown(&set, "/etc/d/gone.json") != NULL); /* it may be there now */
        dirs[1] = (struct device_dir){.path = dirs[1].path, .state = DIR_MISSING};
}

static void test_limits(void)
{
        static char text[(DECLARATIONS_MAX + 10) * 3 + 3];
        struct device_file items[] = {FILE_OF("/etc/d/a.json", "")};
        _cleanup_declared_set_ struct declared_set set = {};
        struct device_files files;

        text[0] = '[';
        for (size_t i = 0; i < DECLARATIONS_MAX + 10; i++)
                memcpy(text + 1 + 3 * i, i + 1 < DECLARATIONS_MAX + 10 ? "{}," : "{}]", 3);
        items[0].text = text;
        items[0].size = strlen(text);
        make(items, 1, &files, &set);
        CHECK_INT(set.count, 0);
        CHECK_INT(set.problems.count, PROBLEM_LIST_MAX);
        CHECK(set.problems.dropped > 0);
        CHECK(declared_set_unknown(&set, "/etc/d/a.json") != NULL);
}

int main(void)
{
        test_forms();
        test_faults_have_line_and_pointer();
        test_two_files_with_one_name();
        test_what_is_unknown();
        test_limits();
        return check_report();
}
