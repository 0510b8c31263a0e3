/* SPDX-License-Identifier: MIT */
/* Where each target of a tree has its kept memory, and when two trees may have the same. */
#include "targets/target_tree_kept.h"
#include "targets/null/null_options.h"
#include "tests/unit/check.h"

#include <stdarg.h>
#include <string.h>

enum { MIB = 1 << 20 };

/* Of what the tests below change a copy. */
static const struct target_desc maps = {.name = "maps", .options = &null_options_table},
                                small = {.name = "small",
                                        .options = &null_options_table,
                                        .kept_disk_bytes = 8,
                                        .kept_queue_bytes = 100,
                                        .kept_version = 7},
                                disk_only = {.name = "disk-only",
                                        .options = &null_options_table,
                                        .kept_disk_bytes = 65,
                                        .kept_version = 2},
                                queue_only = {.name = "queue-only",
                                        .options = &null_options_table,
                                        .kept_queue_bytes = 64,
                                        .kept_version = 3};

/* A root with a list of children. */
static struct {
        struct target_node nodes[8];
        struct target_tree tree;
} made;

static const struct target_tree *make(const struct target_desc *root, unsigned count, ...)
{
        va_list list;

        memset(&made, 0, sizeof(made));
        made.tree = (struct target_tree){.nodes = made.nodes, .count = count + 1};
        made.nodes[0] = (struct target_node){
                .desc = root, .level = 1, .index = -1, .first_child = 1, .child_count = count};
        va_start(list, count);
        for (unsigned i = 0; i < count; i++)
                made.nodes[1 + i] = (struct target_node){
                        .desc = va_arg(list, const struct target_desc *), .level = 2, .index = (int)i};
        va_end(list);
        return &made.tree;
}

static struct target_tree_kept layout_of(const struct target_tree *tree)
{
        struct target_tree_kept kept;

        target_tree_kept(tree, &kept);
        CHECK_INT(target_tree_keeps(tree), kept.disk_bytes + kept.queue_bytes > 0);
        return kept;
}

/* As regions say it since there is kept memory: a disk that runs over an upgrade keeps it. */
static void test_the_outermost_alone_is_as_before(void)
{
        struct target_tree_kept one = layout_of(make(&small, 0)),
                                above = layout_of(make(&small, 2, &maps, &maps));

        CHECK_STR(one.name, "small");
        CHECK_INT(one.version, 7);
        CHECK_INT(one.disk_bytes, 8);
        CHECK_INT(one.queue_bytes, 100);
        CHECK_INT(one.offsets[0].disk, 0);
        CHECK_INT(one.offsets[0].queue, 0);
        CHECK_INT(memcmp(&above, &one, sizeof(one)), 0);
}

static void test_nothing_is_kept(void)
{
        struct target_tree_kept kept = layout_of(make(&maps, 2, &maps, &maps));

        CHECK_INT(kept.disk_bytes, 0);
        CHECK_INT(kept.queue_bytes, 0);
}

static void test_areas_follow_one_another(void)
{
        struct target_tree_kept kept = layout_of(make(&small, 4, &disk_only, &maps, &queue_only, &small));

        CHECK_INT(kept.offsets[0].disk, 0);
        CHECK_INT(kept.offsets[1].disk, 64);
        CHECK_INT(kept.offsets[4].disk, 192); /* 64 + 65, rounded up */
        CHECK_INT(kept.disk_bytes, 200);
        CHECK_INT(kept.offsets[0].queue, 0);
        CHECK_INT(kept.offsets[3].queue, 128);
        CHECK_INT(kept.offsets[4].queue, 192);
        CHECK_INT(kept.queue_bytes, 292);
}

/* No two areas of a layout share a byte, nor a line of the cache, and all lie within the sums. */
static void test_no_area_touches_another(void)
{
        static const struct target_desc *const all[] = {&maps, &small, &disk_only, &queue_only};

        for (unsigned shape = 0; shape < 256; shape++) {
                const struct target_tree *tree = make(
                        all[shape & 3], 3, all[shape >> 2 & 3], all[shape >> 4 & 3], all[shape >> 6 & 3]);
                struct target_tree_kept kept = layout_of(tree);
                uint64_t disk = 0, queue = 0;

                for (unsigned i = 0; i < tree->count; i++) {
                        const struct target_desc *desc = tree->nodes[i].desc;

                        if (desc->kept_disk_bytes > 0) {
                                CHECK(kept.offsets[i].disk >= disk);
                                CHECK_INT(kept.offsets[i].disk % TARGET_KEPT_ALIGNMENT, 0);
                                disk = kept.offsets[i].disk + desc->kept_disk_bytes;
                        }
                        if (desc->kept_queue_bytes > 0) {
                                CHECK(kept.offsets[i].queue >= queue);
                                CHECK_INT(kept.offsets[i].queue % TARGET_KEPT_ALIGNMENT, 0);
                                queue = kept.offsets[i].queue + desc->kept_queue_bytes;
                        }
                }
                CHECK_INT(kept.disk_bytes, disk);
                CHECK_INT(kept.queue_bytes, queue);
        }
}

static bool is_same(const struct target_tree_kept *one, const struct target_tree_kept *other)
{
        return one->version == other->version && strcmp(one->name, other->name) == 0
               && one->disk_bytes == other->disk_bytes && one->queue_bytes == other->queue_bytes;
}

/* The sums are those of the other tree in each case: only the name shows the difference. */
static void test_each_layout_has_a_name_of_its_own(void)
{
        struct target_desc newer = small, renamed = small;
        struct target_tree_kept wanted = layout_of(make(&maps, 3, &small, &maps, &small)), other;

        newer.kept_version++;
        renamed.name = "other";
        other = layout_of(make(&maps, 3, &small, &maps, &small));
        CHECK(is_same(&wanted, &other));
        other = layout_of(make(&maps, 3, &small, &maps, &newer)); /* one version */
        CHECK_INT(other.disk_bytes, wanted.disk_bytes);
        CHECK(!is_same(&wanted, &other));
        other = layout_of(make(&maps, 3, &small, &maps, &renamed)); /* one type */
        CHECK(!is_same(&wanted, &other));
        other = layout_of(make(&maps, 3, &maps, &small, &small)); /* one place */
        CHECK_INT(other.disk_bytes, wanted.disk_bytes);
        CHECK(!is_same(&wanted, &other));
        other = layout_of(make(&small, 1, &small)); /* the outermost one and another */
        CHECK_INT(other.disk_bytes, wanted.disk_bytes);
        CHECK(!is_same(&wanted, &other));

        wanted = layout_of(make(&small, 0));
        other = layout_of(make(&maps, 1, &small)); /* the same target, further down */
        CHECK_INT(other.disk_bytes, wanted.disk_bytes);
        CHECK(!is_same(&wanted, &other));

        wanted = layout_of(make(&maps, 2, &disk_only, &queue_only));
        other = layout_of(make(&maps, 2, &queue_only, &disk_only)); /* exchanged */
        CHECK_INT(other.disk_bytes, wanted.disk_bytes);
        CHECK_INT(other.queue_bytes, wanted.queue_bytes);
        CHECK(!is_same(&wanted, &other));
}

/* What is between the areas takes up the difference, so that all else is the same. */
static void test_a_layout_is_named_by_its_sizes(void)
{
        const struct target_tree_kept wanted = layout_of(make(&maps, 2, &small, &small));

        for (unsigned of_queue = 0; of_queue < 2; of_queue++) {
                struct target_desc larger = small;
                struct target_tree_kept other;

                larger.kept_disk_bytes += !of_queue;
                larger.kept_queue_bytes += of_queue;
                other = layout_of(make(&maps, 2, &larger, &small));
                CHECK_INT(other.disk_bytes, wanted.disk_bytes);
                CHECK_INT(other.queue_bytes, wanted.queue_bytes);
                CHECK_INT(memcmp(other.offsets, wanted.offsets, sizeof(other.offsets)), 0);
                CHECK(!is_same(&wanted, &other));
        }
}

/* "child" and a list of one are two trees. */
static void test_the_way_to_a_target_counts(void)
{
        struct target_tree_kept list = layout_of(make(&maps, 1, &small)), child;

        made.nodes[1].index = -1;
        child = layout_of(&made.tree);
        CHECK(!is_same(&list, &child));
}

/* What keeps nothing, and options, make no difference. */
static void test_a_target_that_keeps_nothing_is_not_looked_at(void)
{
        struct target_desc other_maps = maps;
        struct target_tree_kept wanted = layout_of(make(&maps, 2, &small, &maps)), other;

        other_maps.name = "other-maps";
        other = layout_of(make(&other_maps, 3, &small, &other_maps, &maps));
        CHECK(is_same(&wanted, &other));
}

static void test_the_target_that_passes_a_bound_is_named(void)
{
        struct target_desc large = {.name = "large",
                .options = &null_options_table,
                .kept_disk_bytes = 5 * MIB,
                .kept_queue_bytes = MIB / 4};

        CHECK_INT(target_tree_kept_beyond(make(&maps, 3, &large, &large, &large)), -1);
        CHECK_INT(target_tree_kept_beyond(make(&maps, 4, &large, &large, &large, &large)), 4);
        large.kept_disk_bytes = 4 * MIB;
        CHECK_INT(target_tree_kept_beyond(make(&maps, 4, &large, &large, &large, &large)), -1);
        CHECK_INT(target_tree_kept_beyond(make(&maps, 5, &small, &large, &large, &large, &large)), 5);
        large.kept_disk_bytes = 0;
        CHECK_INT(target_tree_kept_beyond(make(&maps, 5, &large, &large, &large, &large, &queue_only)), 5);
}

static void test_more_than_there_is_is_refused(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        const struct target_desc large = {
                .name = "large", .options = &null_options_table, .kept_disk_bytes = 6 * MIB};

        CHECK_INT(target_tree_check(make(&maps, 2, &large, &large), 0, &problems), 0);
        CHECK_INT(problems.count, 0);
        CHECK_INT(target_tree_check(make(&maps, 4, &large, &large, &large, &large), 0, &problems), 0);
        if (CHECK_INT(problems.count, 1)) {
                CHECK_STR(problems.items[0].pointer, "/target/children/2");
                CHECK_STR(problems.items[0].reason, "TargetsKeepTooMuch");
        }
}

int main(void)
{
        test_the_outermost_alone_is_as_before();
        test_nothing_is_kept();
        test_areas_follow_one_another();
        test_no_area_touches_another();
        test_each_layout_has_a_name_of_its_own();
        test_a_layout_is_named_by_its_sizes();
        test_the_way_to_a_target_counts();
        test_a_target_that_keeps_nothing_is_not_looked_at();
        test_the_target_that_passes_a_bound_is_named();
        test_more_than_there_is_is_refused();
        return check_report();
}
