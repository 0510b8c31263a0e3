/* SPDX-License-Identifier: MIT */
/* observe: what the kernel's answer and a worker mean for a device. The worker is a fake of two values. */
#include "ublkd/reconcile/view/observe.h"

#include "tests/unit/check.h"

static const char uid[] = "b0a5c9f2-0000-4000-8000-000000000001";
static enum worker_stage stage;
static const struct worker_proc *const worker = (const struct worker_proc *)&stage;

enum worker_stage __wrap_worker_proc_stage(const struct worker_proc *asked);
enum worker_stage __wrap_worker_proc_stage(const struct worker_proc *asked)
{
        CHECK(asked == worker);
        return stage;
}

uint16_t __wrap_worker_proc_epoch(const struct worker_proc *asked);
uint16_t __wrap_worker_proc_epoch(const struct worker_proc *asked)
{
        CHECK(asked == worker);
        return 7;
}

static void test_disks(void)
{
        static const struct {
                enum kernel_state state;
                bool recoverable;
                enum plan_worker worker;
                enum plan_kernel seen;
        } rows[] = {
                {KERNEL_STATE_DEAD,     true,  PLAN_WORKER_NONE,    KERNEL_ADDED},
                {KERNEL_STATE_LIVE,     true,  PLAN_WORKER_SERVING, KERNEL_LIVE },
                {KERNEL_STATE_LIVE,     true,  PLAN_WORKER_NONE,    KERNEL_DOWN }, /* the driver has not noticed yet */
                {KERNEL_STATE_LIVE,     false, PLAN_WORKER_NONE,    KERNEL_LIVE },
                {KERNEL_STATE_QUIESCED, true,  PLAN_WORKER_NONE,    KERNEL_DOWN },
                {KERNEL_STATE_FAIL_IO,  true,  PLAN_WORKER_NONE,    KERNEL_DOWN },
        };
        bool foreign = true;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const struct kernel_device disk = {
                        .state = rows[i].state,
                        .cookie = device_cookie(uid, 1),
                        .flags = rows[i].recoverable ? ublk_ctl_flags(KERNEL_RECOVERY_QUEUE) : 0,
                };

                CHECK_INT(observe_kernel(&disk, uid, rows[i].worker, &foreign), rows[i].seen);
                CHECK(!foreign);
        }
}

static void test_a_foreign_disk_counts_as_absent(void)
{
        const struct kernel_device disk = {.state = KERNEL_STATE_LIVE,
                .cookie = device_cookie("c0a5c9f2-0000-4000-8000-000000000001", 1)};
        bool foreign = true;

        CHECK_INT(observe_kernel(NULL, uid, PLAN_WORKER_SERVING, &foreign), KERNEL_ABSENT);
        CHECK(!foreign);
        CHECK_INT(observe_kernel(&disk, uid, PLAN_WORKER_SERVING, &foreign), KERNEL_ABSENT);
        CHECK(foreign);
}

static void test_workers(void)
{
        static const struct {
                enum worker_stage stage;
                enum plan_worker seen;
                bool knows_epoch;
        } rows[] = {
                {WORKER_STAGE_OPENING,  PLAN_WORKER_STARTING, false},
                {WORKER_STAGE_OPEN,     PLAN_WORKER_PARAMS,   true },
                {WORKER_STAGE_FETCHING, PLAN_WORKER_FETCHING, true },
                {WORKER_STAGE_READY,    PLAN_WORKER_READY,    true },
                {WORKER_STAGE_SERVING,  PLAN_WORKER_SERVING,  true },
                {WORKER_STAGE_LEAVING,  PLAN_WORKER_LEAVING,  false},
        };

        CHECK_INT(ARRAY_SIZE(rows), _WORKER_STAGE_MAX);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                stage = rows[i].stage;
                CHECK_INT(observe_worker(worker), rows[i].seen);
                CHECK_INT(observe_worker_is_old(worker, 8), rows[i].knows_epoch);
                CHECK(!observe_worker_is_old(worker, 7));
        }
        CHECK_INT(observe_worker(NULL), PLAN_WORKER_NONE);
        CHECK(!observe_worker_is_old(NULL, 8));
}

int main(void)
{
        test_disks();
        test_a_foreign_disk_counts_as_absent();
        test_workers();
        return check_report();
}
