/* SPDX-License-Identifier: MIT */
/* The look at the end of a backing file that may be cut off. */
#include "targets/worker/queue/store_end.h"
#include "tests/unit/check.h"
#include "tests/unit/shared_region.h"
#include "ublkd/base/cleanup.h"

enum { DISK = 1 << 20, OFFSET = 4096 };

static struct store_end end;
static struct target_device device;
static struct region_control *control;
static struct shared shared;

static bool tree_reaches; /* the answer of a target that is not linear */

static bool reaches_end(const struct target_device *of, uint64_t *ret)
{
        CHECK(of == &device);
        *ret = 4096;
        return tree_reaches;
}

static const struct target without_a_look = {.reaches_end = NULL}, with_a_look = {.reaches_end = reaches_end};

static void open_store_of(const struct target *target, bool linear, bool end_known)
{
        shared = shared_region_new();
        control = device_region_control(shared.region);
        device = (struct target_device){.target = target,
                .linear = linear,
                .linear_end_known = end_known,
                .linear_offset = OFFSET,
                .size = DISK,
                .files = {memfd_create("store", MFD_CLOEXEC)},
                .file_count = 1};
        CHECK_INT(ftruncate(device.files[0], OFFSET + DISK), 0);
        store_end_open(&end, &device, &shared);
}

static void open_store(bool linear, bool end_known)
{
        open_store_of(&without_a_look, linear, end_known);
}

static bool holds_after(off_t size)
{
        CHECK_INT(ftruncate(device.files[0], size), 0);
        store_end_round(&end);
        return store_end_holds(&end);
}

static void test_cut_off(void)
{
        open_store(true, true);
        CHECK(holds_after(OFFSET + DISK));
        CHECK(holds_after(OFFSET + DISK + 1));
        CHECK(!holds_after(OFFSET + DISK - 1));
        CHECK_INT(control->faults[REGION_FAULT_CUT].detail, OFFSET + DISK - 1);
        CHECK(!holds_after(OFFSET + DISK)); /* as long as it was, and with zeroes in it */
        close(device.files[0]);
}

/* What another queue has found. */
static void test_found_by_another(void)
{
        open_store(true, true);
        CHECK(region_fault_latch(control, REGION_FAULT_CUT, STATS_OTHER, 5, 0));
        CHECK(!holds_after(OFFSET + DISK));
        close(device.files[0]);
}

static void test_grown(void)
{
        open_store(true, true);
        CHECK(holds_after(OFFSET + 2 * DISK));
        device.size = 2 * DISK;
        CHECK(holds_after(OFFSET + 2 * DISK));
        CHECK(!holds_after(OFFSET + DISK));
        close(device.files[0]);
}

/* Only when something has failed. */
static void test_not_in_each_round(void)
{
        open_store(true, false);
        CHECK(holds_after(OFFSET));
        CHECK(!store_end_look(&end));
        CHECK(!holds_after(OFFSET + DISK));
        close(device.files[0]);
}

static void test_without_a_file(void)
{
        open_store(false, false);
        CHECK(holds_after(0));
        CHECK(store_end_look(&end));
        CHECK(holds_after(0));
        close(device.files[0]);
}

/* What lies in several stores is looked at by its target. */
static void test_of_a_tree(void)
{
        open_store_of(&with_a_look, false, true);
        tree_reaches = true;
        CHECK(holds_after(0));
        tree_reaches = false;
        CHECK(!holds_after(OFFSET + DISK));
        CHECK_INT(control->faults[REGION_FAULT_CUT].detail, 4096);
        tree_reaches = true;
        CHECK(!holds_after(OFFSET + DISK));
        close(device.files[0]);
        /* Only when something has failed. */
        open_store_of(&with_a_look, false, false);
        tree_reaches = false;
        CHECK(holds_after(0));
        CHECK(!store_end_look(&end));
        CHECK(!holds_after(0));
        close(device.files[0]);
}

int main(void)
{
        test_of_a_tree();
        test_cut_off();
        test_found_by_another();
        test_grown();
        test_not_in_each_round();
        test_without_a_file();
        return check_report();
}
