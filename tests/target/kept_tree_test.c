/* SPDX-License-Identifier: MIT */
/* A tree in which several targets keep memory, from worker to worker: tests/kernel/keeping in the place of null. Each finds its own,
 * and all of them or none. */
#include "targets/known/target_tree_parse.h"
#include "tests/kernel/keeping/keeping.h"
#include "targets/target_tree_kept.h"
#include "targets/worker/disk/stack_internal.h"
#include "tests/target/target_host.h"
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LENGTH = KEEPING_BLOCKS * KEEPING_BLOCK, PLACE = LENGTH + KEEPING_BLOCK /* of one on the disk */ };

#define PART "{\"type\":\"linear\",\"length\":33280,\"child\":{\"type\":\"null\"}}"

static const char two[] =
        "{\"target\":{\"type\":\"linear\",\"children\":[" PART "," PART "]},\"size\":66560}";
static const char striped[] =
        "{\"target\":{\"type\":\"stripe\",\"chunk\":4096,\"children\":[{\"type\":\"null\"},{"
        "\"type\":\"null\"}]},\"size\":65536}";
static const char below[] = "{\"target\":{\"type\":\"linear\",\"child\":" PART "},\"size\":33280}";

static struct target_tree_kept layout_of(const char *target)
{
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_target_tree_ struct target_tree *tree = NULL;
        cJSON *json = cJSON_Parse(target);
        struct target_tree_kept kept = {};

        CHECK(json);
        CHECK_INT(target_tree_parse(cJSON_GetObjectItemCaseSensitive(json, "target"), &tree, &problems), 0);
        if (CHECK_INT(problems.count, 0))
                target_tree_kept(tree, &kept);
        cJSON_Delete(json);
        return kept;
}

static struct region_kept_wish wish_of(const struct target_tree_kept *kept)
{
        return (struct region_kept_wish){
                .target = kept->name,
                .disk_bytes = kept->disk_bytes,
                .queue_bytes = kept->queue_bytes,
                .version = kept->version,
        };
}

/* from: as region_kept_format() has it; -1: of a new disk. */
static int new_region(const struct target_tree_kept *kept, int from)
{
        struct region_kept_wish wish = wish_of(kept);
        int fd = memfd_create("region", MFD_CLOEXEC);

        wish.new_disk = from < 0;
        CHECK_INT(region_kept_format(fd, &(struct device_region_key){.queues = 1}, &wish, from), 0);
        return fd;
}

static int open_host(struct target_host *host, const char *spec, int region)
{
        _cleanup_problems_ struct problem_list problems = {};
        int r = target_host_open_kept(host, spec, region, &problems);

        for (size_t i = 0; i < problems.count && r != -EPROTO; i++)
                fprintf(stderr, "%s: %s\n", problems.items[i].pointer, problems.items[i].detail);
        return r;
}

static struct keeping_report report_of(struct target_host *host, unsigned place)
{
        struct keeping_report report;

        CHECK_INT(target_host_one(host, IO_READ, 0, (uint64_t)place * PLACE + LENGTH, KEEPING_BLOCK),
                KEEPING_BLOCK);
        memcpy(&report, target_host_data(host, 0), sizeof(report));
        return report;
}

static void write_all(struct target_host *host, unsigned place, char letter)
{
        memset(target_host_data(host, 0), letter, LENGTH);
        CHECK_INT(target_host_one(host, IO_WRITE, 0, (uint64_t)place * PLACE, LENGTH), LENGTH);
}

/* Return which letter all of a place is of; -1: of several. */
static int read_all(struct target_host *host, unsigned place)
{
        const char *data = target_host_data(host, 0);

        CHECK_INT(target_host_one(host, IO_READ, 0, (uint64_t)place * PLACE, LENGTH), LENGTH);
        for (unsigned i = 1; i < LENGTH; i++)
                if (data[i] != data[0])
                        return -1;
        return data[0];
}

static void check_place(struct target_host *host, unsigned place, unsigned workers, int letter)
{
        struct keeping_report report = report_of(host, place);

        CHECK_INT(report.workers, workers);
        CHECK_INT(report.disk_was_fresh, workers == 1);
        CHECK_INT(report.queue_was_fresh, workers == 1);
        CHECK_INT(report.records, letter ? KEEPING_BLOCKS : 0);
        CHECK_INT(report.rejected, 0);
        CHECK_INT(read_all(host, place), letter);
}

static void test_each_finds_its_own(void)
{
        struct target_tree_kept kept = layout_of(two);
        int region = new_region(&kept, -1);
        char left[2] = {0, 0};

        CHECK_INT(kept.queue_bytes, 2 * KEEPING_QUEUE_BYTES);
        CHECK_INT(kept.disk_bytes, 64 + sizeof(uint64_t));
        for (unsigned i = 0; i < 3; i++) {
                struct target_host host;

                if (!CHECK_INT(open_host(&host, two, region), 0))
                        break;
                for (unsigned place = 0; place < 2; place++)
                        check_place(&host, place, i + 1, left[place]);
                for (unsigned place = 0; place < 2; place++)
                        write_all(&host, place, left[place] = (char)('a' + 2 * i + place));
                for (unsigned place = 0; place < 2; place++)
                        CHECK_INT(read_all(&host, place), left[place]);
                target_host_close(&host);
        }
        close(region);
}

static void test_a_stripe_finds_its_own(void)
{
        struct target_tree_kept kept = layout_of(striped);
        int region = new_region(&kept, -1);

        for (unsigned i = 0; i < 3; i++) {
                struct target_host host;
                const char *data;

                if (!CHECK_INT(open_host(&host, striped, region), 0))
                        break;
                data = target_host_data(&host, 0);
                CHECK_INT(target_host_one(&host, IO_READ, 0, 0, 2 * LENGTH), 2 * LENGTH);
                for (unsigned at = 0; at < 2 * LENGTH; at++)
                        if (!CHECK_INT(data[at], i == 0 ? 0 : 'a' + (int)(i + at / 4096 % 16)))
                                break;
                for (unsigned at = 0; at < 2 * LENGTH; at++)
                        target_host_data(&host, 0)[at] = (char)('a' + i + 1 + at / 4096 % 16);
                CHECK_INT(target_host_one(&host, IO_WRITE, 0, 0, 2 * LENGTH), 2 * LENGTH);
                target_host_close(&host);
        }
        close(region);
}

static void test_a_target_below_two_without_kept_memory_finds_its_own(void)
{
        struct target_tree_kept kept = layout_of(below);
        int region = new_region(&kept, -1);
        struct target_host host;

        CHECK_INT(open_host(&host, below, region), 0);
        check_place(&host, 0, 1, 0);
        write_all(&host, 0, 'b');
        target_host_close(&host);
        CHECK_INT(open_host(&host, below, region), 0);
        check_place(&host, 0, 2, 'b');
        target_host_close(&host);
        close(region);
}

/* Each target sees its own areas, with a seed of its own, and no byte of another one's. */
static void test_what_the_targets_see(void)
{
        struct target_tree_kept kept = layout_of(two);
        int region = new_region(&kept, -1);
        struct target_host host;
        const struct stack *stack;
        uint64_t seeds[4];

        CHECK_INT(open_host(&host, two, region), 0);
        stack = host.disk.device.state;
        for (unsigned i = 0; i < 5; i++) {
                const struct target_device *device = &stack->devices[i];
                bool keeps = i >= 3; /* below the parts */

                CHECK_INT(device->kept.size, keeps ? sizeof(uint64_t) : 0);
                CHECK_INT(device->kept.state, keeps ? TARGET_KEPT_FRESH : TARGET_KEPT_NONE);
                CHECK_INT(!device->queues_kept, !keeps);
                if (!keeps || !device->queues_kept)
                        continue;
                CHECK_INT((char *)device->kept.memory - (char *)host.disk.device.kept.memory, (i - 3) * 64);
                CHECK_INT(device->queues_kept[0].size, KEEPING_QUEUE_BYTES);
                CHECK_INT((char *)device->queues_kept[0].memory
                                  - (char *)host.disk.device.queues_kept[0].memory,
                        (i - 3) * KEEPING_QUEUE_BYTES);
                seeds[2 * (i - 3)] = device->kept.seed;
                seeds[2 * (i - 3) + 1] = device->queues_kept[0].seed;
        }
        for (unsigned i = 0; i < 4; i++)
                for (unsigned j = 0; j < i; j++)
                        CHECK(seeds[i] != seeds[j]);
        target_host_close(&host);
        close(region);
}

/* ublkd has made memory of another layout in between: both have lost what they had. */
static void test_a_changed_layout_loses_both_areas(void)
{
        struct target_tree_kept kept = layout_of(two), other = layout_of(striped);
        int one = new_region(&kept, -1), middle, last;
        struct target_host host;
        const struct stack *stack;

        CHECK_INT(other.queue_bytes, kept.queue_bytes); /* only the places differ */
        CHECK_INT(other.disk_bytes, kept.disk_bytes);
        CHECK_INT(open_host(&host, two, one), 0);
        write_all(&host, 0, 'a');
        write_all(&host, 1, 'b');
        target_host_close(&host);

        middle = new_region(&other, one);
        CHECK_INT(open_host(&host, two, middle), -EPROTO); /* never used as if it were its own */
        target_host_close(&host);
        last = new_region(&kept, middle);
        CHECK_INT(open_host(&host, two, last), 0);
        stack = host.disk.device.state;
        for (unsigned place = 0; place < 2; place++) {
                CHECK_INT(stack->devices[3 + place].kept.state, TARGET_KEPT_LOST);
                CHECK_INT(stack->devices[3 + place].queues_kept[0].state, TARGET_KEPT_LOST);
                check_place(&host, place, 1, 0);
        }
        target_host_close(&host);
        close(one);
        close(middle);
        close(last);
}

/* A worker that dies before it has settled the memory leaves a half of something, in each of them. */
static void test_what_was_not_settled_is_zeroed_in_both(void)
{
        struct target_tree_kept kept = layout_of(two);
        const struct region_kept_wish wish = wish_of(&kept);
        int region = new_region(&kept, -1);
        struct region_kept_map map;
        struct target_host host;

        CHECK_INT(region_kept_map(region, 1, &wish, &map), 0);
        memset((char *)region_kept_disk(&map) + REGION_KEPT_HEAD, 'x', map.disk_bytes);
        memset((char *)region_kept_queue(&map, 0) + REGION_KEPT_HEAD, 'x', map.queue_bytes);
        CHECK_INT(open_host(&host, two, region), 0);
        check_place(&host, 0, 1, 0);
        check_place(&host, 1, 1, 0);
        target_host_close(&host);
        close(region);
}

int main(void)
{
        test_each_finds_its_own();
        test_a_stripe_finds_its_own();
        test_a_target_below_two_without_kept_memory_finds_its_own();
        test_what_the_targets_see();
        test_a_changed_layout_loses_both_areas();
        test_what_was_not_settled_is_zeroed_in_both();
        return check_report();
}
