/* SPDX-License-Identifier: MIT */
/* The tree of targets: parsing within its bounds, the pointer of each fault, what is refused, and what the whole can do. */
#include "targets/target_tree.h"
#include "tests/unit/check.h"
#include "ublkd/values/json_util.h"

#include <stdlib.h>

#define NULL_TARGET "{\"type\":\"null\"}"
#define LOOP_TARGET "{\"type\":\"loop\",\"path\":\"/x\"}"

static struct target_tree *parse(const char *text, struct problem_list *problems)
{
        _cleanup_json_ cJSON *json = cJSON_Parse(text);
        struct target_tree *tree = NULL;

        CHECK(json);
        CHECK_INT(target_tree_parse(json, &tree, problems), 0);
        return tree;
}

static struct target_tree *parse_good(const char *text)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct target_tree *tree = parse(text, &problems);

        for (size_t i = 0; i < problems.count; i++)
                fprintf(stderr, "%s: %s\n", problems.items[i].pointer, problems.items[i].detail);
        CHECK_INT(problems.count, 0);
        return tree;
}

static void check_first(const struct problem_list *problems, const char *pointer, const char *reason)
{
        if (CHECK(problems->count > 0)) {
                CHECK_STR(problems->items[0].pointer, pointer);
                CHECK_STR(problems->items[0].reason, reason);
        }
}

static void check_malformed(const char *text, const char *pointer, const char *reason)
{
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_target_tree_ struct target_tree *tree = parse(text, &problems);

        check_first(&problems, pointer, reason);
        CHECK_INT(problems.count, 1);
}

static void check_refused(const char *text, const char *pointer, const char *reason)
{
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_target_tree_ struct target_tree *tree = parse_good(text);

        CHECK_INT(target_tree_check(tree, 0, &problems), 0);
        check_first(&problems, pointer, reason);
        CHECK_INT(problems.count, 1);
}

static void check_accepted(const char *text)
{
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_target_tree_ struct target_tree *tree = parse_good(text);

        CHECK_INT(target_tree_check(tree, 0, &problems), 0);
        CHECK_INT(problems.count, 0);
}

static void test_nodes_and_their_pointers(void)
{
        static const char *const pointers[] = {"/target", "/target/children/0", "/target/children/1",
                "/target/children/0/child", "/target/children/1/children/0", "/target/children/1/children/1",
                "/target/children/1/children/1/child"};
        _cleanup_target_tree_ struct target_tree *tree = parse_good(
                "{\"type\":\"stripe\",\"children\":[{\"type\":\"linear\",\"child\":" NULL_TARGET "},"
                "{\"type\":\"stripe\",\"children\":[" NULL_TARGET
                ",{\"type\":\"linear\",\"child\":" NULL_TARGET "}]}]}");
        char pointer[TARGET_POINTER_SIZE];

        if (!CHECK_INT(tree->count, ARRAY_SIZE(pointers)))
                return;
        for (unsigned i = 0; i < tree->count; i++) {
                const struct target_node *node = &tree->nodes[i];

                target_tree_pointer(tree, i, pointer);
                CHECK_STR(pointer, pointers[i]);
                for (unsigned child = 0; child < node->child_count; child++)
                        CHECK_INT(tree->nodes[node->first_child + child].parent, i);
        }
}

static void test_faults(void)
{
        check_malformed("{}", "/target/type", "MissingField");
        check_malformed("{\"type\":7}", "/target/type", "WrongType");
        check_malformed("{\"type\":\"nonsense\"}", "/target/type", "UnknownTarget");
        check_malformed("{\"type\":\"null\",\"child\":" NULL_TARGET "}", "/target/child", "UnknownField");
        check_malformed(
                "{\"type\":\"loop\",\"path\":\"/x\",\"children\":[]}", "/target/children", "UnknownField");
        check_malformed("{\"type\":\"linear\",\"child\":7}", "/target/child", "WrongType");
        check_malformed("{\"type\":\"linear\",\"child\":{\"type\":\"loop\",\"path\":\"x\"}}",
                "/target/child/path", "BadFormat");
        check_malformed("{\"type\":\"stripe\"}", "/target/children", "MissingField");
        check_malformed("{\"type\":\"stripe\",\"children\":{}}", "/target/children", "WrongType");
        check_malformed("{\"type\":\"stripe\",\"children\":[" NULL_TARGET "]}", "/target/children", "TooFew");
        check_malformed("{\"type\":\"stripe\",\"children\":[" NULL_TARGET ",null]}", "/target/children/1",
                "WrongType");
        check_malformed("{\"type\":\"stripe\",\"chunk\":1,\"children\":[" NULL_TARGET "," NULL_TARGET "]}",
                "/target/chunk", "OutOfRange");
}

/* A list of `count` null targets in a stripe. */
static char *stripe_of(unsigned count, const char *item)
{
        char *text = malloc(64 + count * (strlen(item) + 1));

        strcpy(text, "{\"type\":\"stripe\",\"children\":[");
        for (unsigned i = 0; i < count; i++) {
                strcat(text, i > 0 ? "," : "");
                strcat(text, item);
        }
        return strcat(text, "]}");
}

/* `levels` of linear targets above another target. */
static char *tower_over(unsigned levels, const char *top)
{
        char *text = malloc(64 + levels * 64 + strlen(top));

        text[0] = '\0';
        for (unsigned i = 0; i < levels; i++)
                strcat(text, "{\"type\":\"linear\",\"child\":");
        strcat(text, top);
        for (unsigned i = 0; i < levels; i++)
                strcat(text, "}");
        return text;
}

static char *tower_of(unsigned levels)
{
        return tower_over(levels, NULL_TARGET);
}

static void test_bounds(void)
{
        static const char two[] = "{\"type\":\"stripe\",\"children\":[" NULL_TARGET "," NULL_TARGET "]}";
        _cleanup_free_ char *most = stripe_of(63, NULL_TARGET), *more = stripe_of(64, NULL_TARGET),
                            *many = stripe_of(21, two), *too_many = stripe_of(22, two),
                            *deepest = tower_of(7), *too_deep = tower_of(8), *hostile = tower_of(900),
                            *deep_list = tower_over(7, two);
        _cleanup_target_tree_ struct target_tree *wide = parse_good(most), *full = parse_good(many),
                                                 *deep = parse_good(deepest);

        CHECK_INT(wide->count, 64);
        CHECK_INT(full->count, 64);
        CHECK_INT(deep->count, 8);
        check_malformed(more, "/target/children", "TooMany");
        check_malformed(too_many, "/target/children/20", "TooManyTargets");
        check_malformed(too_deep, "/target/child/child/child/child/child/child/child/child", "TooManyLevels");
        check_malformed(
                deep_list, "/target/child/child/child/child/child/child/child/children", "TooManyLevels");
        check_malformed(hostile, "/target/child/child/child/child/child/child/child/child", "TooManyLevels");
}

static void test_what_is_refused(void)
{
        check_accepted("{\"type\":\"linear\",\"child\":" LOOP_TARGET "}");
        check_accepted("{\"type\":\"linear\",\"offset\":4096,\"child\":{\"type\":\"linear\",\"length\":4096,"
                       "\"child\":" LOOP_TARGET "}}");
        check_accepted("{\"type\":\"stripe\",\"children\":[" NULL_TARGET "," NULL_TARGET "]}");
        check_refused("{\"type\":\"linear\"}", "/target", "ChildOrChildren");
        check_refused("{\"type\":\"linear\",\"child\":" NULL_TARGET ",\"children\":[" NULL_TARGET
                      "," NULL_TARGET "]}",
                "/target/children", "ChildOrChildren");
        check_refused("{\"type\":\"linear\",\"offset\":512,\"children\":[{\"type\":\"linear\",\"length\":512,"
                      "\"child\":" NULL_TARGET "}," NULL_TARGET "]}",
                "/target/offset", "PartOfChildren");
        check_refused("{\"type\":\"linear\",\"child\":{\"type\":\"linear\",\"children\":[" NULL_TARGET
                      "," NULL_TARGET "]}}",
                "/target/child/children/0", "LengthOfChild");
        /* What the supervisor could not claim, lock and recognise. */
        check_refused("{\"type\":\"stripe\",\"children\":[" NULL_TARGET "," LOOP_TARGET "]}",
                "/target/children/1", "StoreAmongChildren");
        check_refused("{\"type\":\"linear\",\"child\":{\"type\":\"stripe\",\"children\":[" NULL_TARGET
                      ",{\"type\":\"linear\",\"child\":" LOOP_TARGET "}]}}",
                "/target/child/children/1/child", "StoreAmongChildren");
        check_refused("{\"type\":\"linear\",\"child\":{\"type\":\"loop\",\"pool\":\"fast\"}}",
                "/target/child/pool", "PoolBelowTarget");
        check_refused("{\"type\":\"linear\",\"child\":{\"type\":\"loop\"}}", "/target/child", "PathOrPool");
}

/* The worker could not hand the range of the disk down through a target that places its bytes otherwise. */
static void test_a_store_below_a_child_without_the_flag_of_a_part_is_refused(void)
{
        struct target_desc other;
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_target_tree_ struct target_tree *tree =
                parse_good("{\"type\":\"linear\",\"child\":{\"type\":\"linear\",\"child\":" LOOP_TARGET "}}");

        other = *tree->nodes[1].desc;
        CHECK(other.flags & TARGET_IS_PART);
        other.flags &= ~(unsigned)TARGET_IS_PART;
        tree->nodes[1].desc = &other;
        CHECK_INT(target_tree_check(tree, 0, &problems), 0);
        check_first(&problems, "/target/child/child", "StoreAmongChildren");
}

static void test_the_store(void)
{
        static const char text[] =
                "{\"type\":\"linear\",\"child\":{\"type\":\"linear\",\"child\":" LOOP_TARGET "}}";
        _cleanup_json_ cJSON *json = cJSON_Parse(text);
        _cleanup_target_tree_ struct target_tree *tree = parse_good(text), *none = parse_good(NULL_TARGET);

        CHECK_INT(target_tree_store(tree), 2);
        CHECK_STR(target_node_path(&tree->nodes[2]), "/x");
        CHECK(!target_node_path(&tree->nodes[0]));
        CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(target_store_object(json), "path")), "/x");
        CHECK_INT(target_tree_store(none), -1);
}

static void test_equality(void)
{
        static const char *const different[] = {
                LOOP_TARGET,
                "{\"type\":\"linear\",\"child\":" LOOP_TARGET "}",
                "{\"type\":\"linear\",\"offset\":512,\"child\":" LOOP_TARGET "}",
                "{\"type\":\"linear\",\"child\":{\"type\":\"loop\",\"path\":\"/y\"}}",
                "{\"type\":\"linear\",\"child\":{\"type\":\"linear\",\"child\":" LOOP_TARGET "}}",
                "{\"type\":\"stripe\",\"children\":[" NULL_TARGET "," NULL_TARGET "]}",
                "{\"type\":\"stripe\",\"chunk\":4096,\"children\":[" NULL_TARGET "," NULL_TARGET "]}",
                "{\"type\":\"stripe\",\"children\":[" NULL_TARGET "," NULL_TARGET "," NULL_TARGET "]}",
        };
        _cleanup_target_tree_ struct target_tree
                *number = parse_good("{\"type\":\"stripe\",\"chunk\":65536,\"children\":[" NULL_TARGET
                                     "," NULL_TARGET "]}"),
                *text = parse_good("{\"type\":\"stripe\",\"chunk\":\"64KiB\",\"children\":[" NULL_TARGET
                                   "," NULL_TARGET "]}");

        CHECK(target_tree_equal(number, text, true));
        for (size_t i = 0; i < ARRAY_SIZE(different); i++)
                for (size_t k = 0; k < ARRAY_SIZE(different); k++) {
                        _cleanup_target_tree_ struct target_tree *one = parse_good(different[i]),
                                                                 *other = parse_good(different[k]);

                        CHECK_INT(target_tree_equal(one, other, true), i == k);
                        CHECK_INT(target_tree_equal(one, other, false), i == k);
                }
}

/* Every pair of sets of flags below a node that has all. */
static void test_flags(void)
{
        enum { FLAGS = 6 };
        struct target_desc desc[3] = {};
        struct target_node nodes[3] = {{.desc = &desc[0]}, {.desc = &desc[1]}, {.desc = &desc[2]}};
        struct target_tree tree = {.nodes = nodes, .count = 3};
        const unsigned all =
                TARGET_NEVER_WAITS | TARGET_NATIVE_FUA | TARGET_REISSUE_SAFE | TARGET_REGISTERED_BUFFERS;

        for (unsigned one = 0; one < 1U << FLAGS; one++)
                for (unsigned two = 0; two < 1U << FLAGS; two++)
                        for (unsigned node = 0; node < 1U << FLAGS; node++) {
                                unsigned wanted;

                                desc[0].flags = node;
                                desc[1].flags = one;
                                desc[2].flags = two;
                                wanted = (one & two & node & all)
                                         | ((one | two | node) & (TARGET_ONE_QUEUE | TARGET_STORE_OF_USER));
                                if (target_tree_flags(&tree) != wanted)
                                        CHECK_INT(target_tree_flags(&tree), wanted);
                        }
        desc[1].needs = TARGET_NEEDS_NETWORK;
        CHECK_INT(target_tree_needs(&tree), TARGET_NEEDS_NETWORK);
}

static void check_size(const char *text, bool wanted)
{
        _cleanup_target_tree_ struct target_tree *tree = parse_good(text);

        CHECK_INT(target_tree_has_size(tree), wanted);
}

static void test_sizes(void)
{
        check_size(NULL_TARGET, false);
        check_size(LOOP_TARGET, true);
        check_size("{\"type\":\"linear\",\"child\":" NULL_TARGET "}", false);
        check_size("{\"type\":\"linear\",\"length\":512,\"child\":" NULL_TARGET "}", true);
        check_size("{\"type\":\"linear\",\"child\":" LOOP_TARGET "}", true);
        check_size("{\"type\":\"linear\",\"children\":[" LOOP_TARGET "," NULL_TARGET "]}", false);
        check_size("{\"type\":\"linear\",\"children\":[" NULL_TARGET "," LOOP_TARGET "]}", true);
        check_size("{\"type\":\"stripe\",\"children\":[" NULL_TARGET "," NULL_TARGET "]}", false);
        check_size("{\"type\":\"stripe\",\"children\":[" NULL_TARGET "," LOOP_TARGET "]}", true);
}

int main(void)
{
        test_nodes_and_their_pointers();
        test_faults();
        test_bounds();
        test_what_is_refused();
        test_a_store_below_a_child_without_the_flag_of_a_part_is_refused();
        test_the_store();
        test_equality();
        test_flags();
        test_sizes();
        return check_report();
}
