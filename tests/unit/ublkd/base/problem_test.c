/* SPDX-License-Identifier: MIT */
/* The list of problems: bounded, copied, reusable. */
#include "tests/unit/check.h"
#include "ublkd/base/problem.h"

static void test_add_copies(void)
{
        _cleanup_problems_ struct problem_list list = {};
        char pointer[] = "/size", reason[] = "OutOfRange";

        CHECK_INT(problem_add(&list, EINVAL, pointer, reason, "%s is %d", "size", 7), 0);
        pointer[1] = reason[0] = 'x';
        if (!CHECK_INT(list.count, 1))
                return;
        CHECK_INT(list.items[0].error, EINVAL);
        CHECK_STR(list.items[0].pointer, "/size");
        CHECK_STR(list.items[0].reason, "OutOfRange");
        CHECK_STR(list.items[0].detail, "size is 7");
}

static void test_no_pointer_is_the_document(void)
{
        _cleanup_problems_ struct problem_list list = {};

        CHECK_INT(problem_add(&list, 0, NULL, "Any", "all of it"), 0);
        CHECK_STR(list.items[0].pointer, "");
}

static void test_bounded(void)
{
        _cleanup_problems_ struct problem_list list = {}, copy = {};

        for (int i = 0; i < PROBLEM_LIST_MAX + 3; i++)
                CHECK_INT(problem_add(&list, 0, "", "Any", "%d", i), 0);
        CHECK_INT(list.count, PROBLEM_LIST_MAX);
        CHECK_INT(list.dropped, 3);
        CHECK_STR(list.items[PROBLEM_LIST_MAX - 1].detail, "63");

        CHECK_INT(problem_add(&copy, 0, "", "First", "before"), 0);
        CHECK_INT(problem_list_append(&copy, &list), 0);
        CHECK_INT(copy.count, PROBLEM_LIST_MAX);
        CHECK_INT(copy.dropped, 4);
        CHECK_STR(copy.items[1].detail, "0");
}

static void test_clear_leaves_an_empty_list(void)
{
        struct problem_list list = {};

        problem_list_clear(&list);
        CHECK_INT(problem_add(&list, 0, "", "Any", "one"), 0);
        problem_list_clear(&list);
        CHECK_INT(list.count, 0);
        CHECK(!list.items);
        CHECK_INT(problem_add(&list, 0, "", "Any", "two"), 0);
        CHECK_STR(list.items[0].detail, "two");
        problem_list_clear(&list);
}

static void test_what_follows_a_pointer(void)
{
        CHECK_STR(pointer_rest("/target", "/target"), "");
        CHECK_STR(pointer_rest("/target/child/path", "/target"), "/child/path");
        CHECK_STR(pointer_rest("/size", ""), "/size");
        CHECK_STR(pointer_rest("", ""), "");
        CHECK(!pointer_rest("/targets", "/target"));
        CHECK(!pointer_rest("/target/children/10", "/target/children/1"));
        CHECK(!pointer_rest("/target", "/target/child"));
        CHECK(!pointer_rest("", "/target"));
}

int main(void)
{
        test_add_copies();
        test_no_pointer_is_the_document();
        test_bounded();
        test_clear_leaves_an_empty_list();
        test_what_follows_a_pointer();
        return check_report();
}
