/* SPDX-License-Identifier: MIT */
/* json_util: pointers, and names that are given twice. */
#include "ublkd/values/json_util.h"

#include "tests/unit/check.h"

static void test_pointers(void)
{
        struct json_place root = {.name = "/spec"}, outer = {&root, "a/b~"}, inner = {&outer, "0"};
        _cleanup_free_ char *whole = json_place_pointer(&root), *part = json_place_pointer(&inner);

        CHECK_STR(whole, "/spec");
        CHECK_STR(part, "/spec/a~1b~0/0");
}

static void test_names_that_are_given_twice(void)
{
        _cleanup_json_ cJSON *object = cJSON_Parse("{\"a\":1,\"b\":2,\"a\":3,\"A\":4}");
        static const bool wanted[] = {true, false, false, false};
        const cJSON *member;
        size_t i = 0;

        cJSON_ArrayForEach (member, object)
                CHECK(i < ARRAY_SIZE(wanted) && json_name_recurs(member) == wanted[i++]);
        CHECK_INT(i, ARRAY_SIZE(wanted));
}

int main(void)
{
        test_pointers();
        test_names_that_are_given_twice();
        return check_report();
}
