/* SPDX-License-Identifier: MIT */
/* What the judgement makes of a worker that hangs as it leaves a live disk, whatever the seed. */
#include "sim.h"
#include "tests/unit/check.h"

#include <stdlib.h>

/* The linker gives plan() this name, and the reconciler __wrap_plan(). */
enum plan_action __real_plan(const struct plan_facts *facts);

enum {
        SCHEDULES = 200,
        LATE = 800 * 1000 * 1000, /* after the last fault: ublkd is at rest, and looks again before the end */
};

static bool unnoticed; /* the driver never notices that the disk has no queues */
static int hung;       /* the worker of this schedule, or NO_PROCESS */

static void hang_as_it_leaves(const struct plan_facts *facts)
{
        struct kernel_disk *disk;

        if (hung != NO_PROCESS || !sim->calm || sim->now < sim->calm_at + LATE || facts->kernel != KERNEL_LIVE
                || facts->worker != PLAN_WORKER_SERVING)
                return;
        disk = &sim->disks[sim->database.record.number];
        hung = disk->holder;
        disk->unnoticed = unnoticed;
        sim->processes[hung].stage = PROCESS_LEAVING;
        sim->processes[hung].hung = true;
}

/* Each schedule that ends with a live disk. */
static void check_schedules(struct world *world, const char *rule)
{
        unsigned hangs = 0;

        world->on_facts = hang_as_it_leaves;
        for (uint64_t seed = 1; seed <= SCHEDULES; seed++) {
                const char *broken;

                hung = NO_PROCESS;
                broken = schedule_run(world, seed, __real_plan, false);
                CHECK_STR(broken, hung == NO_PROCESS ? NULL : rule);
                hangs += hung != NO_PROCESS;
        }
        CHECK(hangs > 0);
}

/* STOP_DEV came just before START_DEV. To ublkd it is as a worker that hangs with its queues in hand. */
static void test_a_disk_whose_loss_the_driver_misses_is_good(struct world *world)
{
        unnoticed = true;
        check_schedules(world, NULL);
}

static void test_any_other_disk_is_not_served(struct world *world)
{
        unnoticed = false;
        check_schedules(world, "the disk is not served");
}

int main(void)
{
        struct world *world = calloc(1, sizeof(*world));

        if (!CHECK(world))
                return check_report();
        test_a_disk_whose_loss_the_driver_misses_is_good(world);
        test_any_other_disk_is_not_served(world);
        free(world);
        return check_report();
}
