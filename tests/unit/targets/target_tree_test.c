/* SPDX-License-Identifier: MIT */
/* The tree of targets: parsing within its bounds, the pointer of each fault, what is refused, and what the whole can do. */
#include "targets/known/target_tree_parse.h"
#include "targets/known/known_targets.h"
#include "targets/target_tree.h"
#include "tests/unit/check.h"
#include "ublkd/values/json_util.h"

#include <errno.h>
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
        _cleanup_target_tree_ _unused_ struct target_tree *tree = parse(text, &problems);

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

#define FAULT_TARGET(MORE) "{\"type\":\"fault\"," MORE "\"child\":" LOOP_TARGET "}"
#define CACHE "\"volatileCache\":true,"

/* Of the outermost target, if all of them can do it; and of one for tests wherever it stands. */
static void test_verbs(void)
{
        static const struct {
                const char *text, *verb;
                int result,
                        node; /* the node of the verb, or the one that lacks it; -1: the options refuse it */
        } cases[] = {
                {LOOP_TARGET,                                                                               "scrub",    0,           0 },
                {LOOP_TARGET,                                                                               "powercut", -ENOENT,     0 },
                {NULL_TARGET,                                                                               "scrub",    -ENOENT,     0 },
                {"{\"type\":\"linear\",\"child\":" LOOP_TARGET "}",                                         "scrub",    0,           0 },
                {"{\"type\":\"stripe\",\"children\":[" LOOP_TARGET "," NULL_TARGET "]}",                    "scrub",    -EOPNOTSUPP,
                 2                                                                                                                     },
                {"{\"type\":\"linear\",\"child\":" NULL_TARGET "}",                                         "scrub",    -EOPNOTSUPP, 1 },
                {"{\"type\":\"linear\",\"child\":" FAULT_TARGET("") "}",                                    "scrub",    0,           0 },
                {FAULT_TARGET(CACHE),                                                                       "powercut", 0,           0 },
                {FAULT_TARGET(""),                                                                          "powercut", -EOPNOTSUPP, -1},
                {"{\"type\":\"linear\",\"child\":" FAULT_TARGET(CACHE) "}",                                 "powercut", 0,           1 },
                {"{\"type\":\"linear\",\"child\":{\"type\":\"fault\",\"child\":" NULL_TARGET "}}",          "scrub",
                 -EOPNOTSUPP,                                                                                                        2 },
                {"{\"type\":\"linear\",\"child\":{\"type\":\"fault\"," CACHE "\"child\":" NULL_TARGET "}}",
                 "powercut",                                                                                            0,           1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_target_tree_ struct target_tree *tree = parse_good(cases[i].text);
                struct target_tree_verb verb;
                int r = target_tree_verb(tree, cases[i].verb, &verb);

                CHECK_INT(r, cases[i].result);
                if (r == -ENOENT)
                        continue;
                CHECK_STR(verb.verb->name, cases[i].verb);
                CHECK(verb.verb == &tree->nodes[verb.node].desc->verbs[verb.number]);
                CHECK(!verb.refusal == (cases[i].node >= 0));
                if (cases[i].node >= 0)
                        CHECK_INT(r < 0 ? verb.lacking : verb.node, cases[i].node);
                CHECK(r < 0 || target_tree_has_verbs(tree));
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
        check_accepted("{\"type\":\"stripe\",\"children\":[" NULL_TARGET "," LOOP_TARGET "]}");
        check_refused("{\"type\":\"linear\",\"child\":{\"type\":\"loop\",\"pool\":\"fast\"}}",
                "/target/child/pool", "PoolBelowTarget");
        check_refused("{\"type\":\"linear\",\"child\":{\"type\":\"loop\"}}", "/target/child", "PathOrPool");
}

/* Return the number of stores; *ret_list: whether they have a list. */
static unsigned count_stores(const char *text, bool *ret_list)
{
        _cleanup_target_tree_ struct target_tree *tree = parse_good(text);
        unsigned numbers[TARGET_STORES_MAX];

        *ret_list = target_tree_has_list(tree);
        return target_tree_stores(tree, numbers);
}

static void test_a_list_of_stores(void)
{
        bool is_list;

        CHECK_INT(count_stores(NULL_TARGET, &is_list), 0);
        CHECK(!is_list);
        CHECK_INT(count_stores(LOOP_TARGET, &is_list), 1);
        CHECK(!is_list);
        CHECK_INT(count_stores("{\"type\":\"linear\",\"child\":" LOOP_TARGET "}", &is_list), 1);
        CHECK(!is_list);
        CHECK_INT(count_stores(
                          "{\"type\":\"stripe\",\"children\":[" NULL_TARGET "," LOOP_TARGET "]}", &is_list),
                1);
        CHECK(is_list);
        CHECK_INT(count_stores(
                          "{\"type\":\"stripe\",\"children\":[" LOOP_TARGET "," LOOP_TARGET "]}", &is_list),
                2);
        CHECK(is_list);
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
        enum { FLAGS = 10 };
        struct target_desc desc[3] = {};
        struct target_node nodes[3] = {{.desc = &desc[0]}, {.desc = &desc[1]}, {.desc = &desc[2]}};
        struct target_tree tree = {.nodes = nodes, .count = 3};
        static const unsigned all = TARGET_NEVER_WAITS | TARGET_NATIVE_FUA | TARGET_REISSUE_SAFE
                                    | TARGET_REGISTERED_BUFFERS | TARGET_SCANS,
                              any = TARGET_ONE_QUEUE | TARGET_STORE_OF_USER | TARGET_SEES_ALL
                                    | TARGET_FOR_TESTS;

        /* Each flag follows from the same one alone: so each flag with each pattern of nodes, and each pair of flags. */
        for (unsigned one = 0; one < FLAGS; one++)
                for (unsigned two = one; two < FLAGS; two++)
                        for (unsigned pattern = 0; pattern < 64; pattern++) {
                                unsigned and_all = ~0U, or_any = 0;

                                for (unsigned node = 0; node < ARRAY_SIZE(desc); node++) {
                                        desc[node].flags = (pattern >> node & 1) << one
                                                           | (pattern >> (node + 3) & 1) << two;
                                        and_all &= desc[node].flags;
                                        or_any |= desc[node].flags;
                                }
                                CHECK_INT(target_tree_flags(&tree), (and_all & all) | (or_any & any));
                        }
}

/* What one target of it needs, the tree needs: each set of needs at each node. */
static void test_needs(void)
{
        enum { SETS = (TARGET_NEEDS_NETWORK | TARGET_NEEDS_POLL) + 1, NODES = 3 };
        struct target_desc desc[NODES] = {};
        struct target_node nodes[NODES] = {{.desc = &desc[0]}, {.desc = &desc[1]}, {.desc = &desc[2]}};
        const struct target_tree tree = {.nodes = nodes, .count = NODES};

        for (unsigned number = 0; number < SETS * SETS * SETS; number++) {
                desc[0].needs = number % SETS;
                desc[1].needs = number / SETS % SETS;
                desc[2].needs = number / SETS / SETS;
                CHECK_INT(target_tree_needs(&tree), desc[0].needs | desc[1].needs | desc[2].needs);
        }
}

/* ---- what a queue reserves ---- */

/* Ways to put a target above another. */
static const struct {
        const char *before, *after;
        unsigned copies; /* of what is below */
        bool is_fault;
} above[] = {
        {"",                                    "",   1, false},
        {"{\"type\":\"linear\",\"child\":",     "}",  1, false},
        {"{\"type\":\"linear\",\"children\":[", "]}", 3, false},
        {"{\"type\":\"stripe\",\"children\":[", "]}", 2, false},
        {"{\"type\":\"fault\",\"child\":",      "}",  1, true },
};

enum { TEXT_SIZE = 1024 };

static void put_above(size_t way, const char *below, char ret[static TEXT_SIZE])
{
        int used = snprintf(ret, TEXT_SIZE, "%s", above[way].before);

        for (unsigned i = 0; i < above[way].copies; i++)
                used += snprintf(ret + used, TEXT_SIZE - (size_t)used, "%s%s", i > 0 ? "," : "", below);
        snprintf(ret + used, TEXT_SIZE - (size_t)used, "%s", above[way].after);
}

/* outer, inner: of above[]. */
static void check_children(size_t outer, size_t inner, const char *leaf, bool leaf_waits)
{
        unsigned faults = above[outer].is_fault + (above[inner].is_fault ? above[outer].copies : 0);
        unsigned wanted = above[outer].copies * above[inner].copies - 1 + faults;
        _cleanup_target_tree_ struct target_tree *tree = NULL;
        char below[TEXT_SIZE], text[TEXT_SIZE];
        struct target_waits waits;

        put_above(inner, leaf, below);
        put_above(outer, below, text);
        tree = parse_good(text);
        target_tree_waits(tree, &waits);
        if (faults == 0 && !leaf_waits)
                wanted = 0;
        if (!CHECK_INT(waits.children, wanted))
                fprintf(stderr, "%s\n", text);
        CHECK_INT(waits.background + waits.device_background + waits.files + waits.work_threads, 0);
}

static void test_what_trees_of_the_targets_that_exist_reserve(void)
{
        for (size_t outer = 0; outer < ARRAY_SIZE(above); outer++)
                for (size_t inner = 0; inner < ARRAY_SIZE(above); inner++) {
                        check_children(outer, inner, NULL_TARGET, false);
                        check_children(outer, inner, LOOP_TARGET, true);
                }
}

/* A target above two others, each of which reserves a part of this or not. */
static const struct target_waits reserved[] = {
        {},
        {.children = 1},
        {.background = 2},
        {.device_background = 1},
        {.files = 3},
        {.work_threads = 2},
        {.children = 14, .background = 1, .device_background = 3, .files = 1, .work_threads = 4},
};

static void check_three(const struct target_waits *const of[3])
{
        struct target_desc desc[3] = {{.waits = *of[0]}, {.waits = *of[1]}, {.waits = *of[2]}};
        struct target_node nodes[3] = {
                {.desc = &desc[0], .first_child = 1, .child_count = 2},
                {.desc = &desc[1], .first_child = 3},
                {.desc = &desc[2], .first_child = 3, .index = 1}
        };
        const struct target_tree tree = {.nodes = nodes, .count = 3};
        unsigned children = 1, threads = 0;
        struct target_waits waits;

        target_tree_waits(&tree, &waits);
        for (unsigned i = 0; i < 3; i++) {
                children += of[i]->children;
                threads = of[i]->work_threads > threads ? of[i]->work_threads : threads;
        }
        CHECK_INT(waits.children, children < TARGET_CHILDREN_MAX ? children : TARGET_CHILDREN_MAX);
        CHECK_INT(waits.background, of[0]->background + of[1]->background + of[2]->background);
        CHECK_INT(waits.device_background,
                of[0]->device_background + of[1]->device_background + of[2]->device_background);
        CHECK_INT(waits.files, of[0]->files + of[1]->files + of[2]->files);
        CHECK_INT(waits.work_threads, threads);
}

static void test_a_tree_reserves_what_each_of_its_targets_reserves(void)
{
        const size_t count = ARRAY_SIZE(reserved);

        for (size_t i = 0; i < count * count * count; i++)
                check_three((const struct target_waits *const[3]){
                        &reserved[i % count], &reserved[i / count % count], &reserved[i / count / count]});
}

static void check_two(const struct target_waits *one, const struct target_waits *two, bool refused)
{
        _cleanup_problems_ struct problem_list problems = {};
        const struct target_desc *null = known_target_find("null");
        struct target_desc desc[2] = {
                {.options = null->options, .waits = *one},
                {.options = null->options, .waits = *two}
        };
        struct target_node nodes[2] = {
                {.desc = &desc[0], .first_child = 1, .child_count = 1, .index = -1},
                {.desc = &desc[1], .first_child = 2, .index = -1}
        };
        const struct target_tree tree = {.nodes = nodes, .count = 2};

        CHECK_INT(target_tree_check(&tree, 0, &problems), 0);
        CHECK_INT(problems.count, refused);
        if (refused)
                check_first(&problems, "/target", "TargetsReserveTooMuch");
}

static void test_a_tree_that_reserves_more_than_a_queue_has_is_refused(void)
{
        static const struct {
                struct target_waits one, two;
        } most[] = {
                {{.background = TARGET_BACKGROUND_MAX - 1},        {.background = 1}       },
                {{.device_background = TARGET_BACKGROUND_MAX - 1}, {.device_background = 1}},
                {{.files = TARGET_QUEUE_FILES_MAX - 1},            {.files = 1}            },
        };
        static const struct target_waits full = {
                .children = TARGET_CHILDREN_MAX, .work_threads = TARGET_WORK_THREADS_MAX};

        for (size_t i = 0; i < ARRAY_SIZE(most); i++) {
                struct target_waits more = most[i].one;

                more.background += most[i].two.background;
                more.device_background += most[i].two.device_background;
                more.files += most[i].two.files;
                check_two(&most[i].one, &most[i].two, false);
                check_two(&most[i].two, &most[i].one, false);
                check_two(&more, &most[i].two, true);
                check_two(&most[i].two, &more, true);
        }
        check_two(&full, &full, false); /* these are bounded, and shared */
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
        test_verbs();
        test_faults();
        test_bounds();
        test_what_is_refused();
        test_a_list_of_stores();
        test_the_store();
        test_equality();
        test_flags();
        test_needs();
        test_what_trees_of_the_targets_that_exist_reserve();
        test_a_tree_reserves_what_each_of_its_targets_reserves();
        test_a_tree_that_reserves_more_than_a_queue_has_is_refused();
        test_sizes();
        return check_report();
}
