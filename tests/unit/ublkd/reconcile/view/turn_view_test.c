/* SPDX-License-Identifier: MIT */
/* turn_view: takes the kernel's answer, and keeps the old facts without one. /sys is a fake. */
#include "ublkd/reconcile/view/turn_view.h"
#include "ublkd/reconcile/view/observe.h"

#include "tests/unit/check.h"

#include <errno.h>

static const char uid[] = "b0a5c9f2-0000-4000-8000-000000000001";
static int looks;

int __wrap_observe_disk_geometry(int number, uint64_t *ret_size, uint32_t *ret_logical_block_size);

int __wrap_observe_disk_geometry(int number, uint64_t *ret_size, uint32_t *ret_logical_block_size)
{
        CHECK_INT(number, 3);
        looks++;
        *ret_size = 4096;
        *ret_logical_block_size = 512;
        return 0;
}

int main(void)
{
        struct device_record record = {.number = 3};
        const struct kernel_device live = {
                .number = 3, .state = KERNEL_STATE_LIVE, .cookie = device_cookie(uid, 1)};
        const struct kernel_device foreign = {.number = 3, .state = KERNEL_STATE_LIVE};
        struct turn_view view = {.worker_seen = PLAN_WORKER_SERVING};

        memcpy(record.uid, uid, sizeof(uid));
        turn_view_see(&view, &record, NULL, &live);
        CHECK_INT(view.facts.kernel, KERNEL_LIVE);
        CHECK_INT(view.facts.worker, PLAN_WORKER_SERVING);
        CHECK_INT(view.kernel.number, 3);
        CHECK_INT(view.geometry.size, 4096);
        CHECK_INT(looks, 1);
        CHECK(!view.foreign);

        /* the kernel does not answer; the worker has exited */
        view.worker_seen = PLAN_WORKER_NONE;
        turn_view_stay(&view, &record, NULL);
        CHECK_INT(view.facts.kernel, KERNEL_LIVE);
        CHECK_INT(view.facts.worker, PLAN_WORKER_NONE);
        CHECK_INT(looks, 2);

        turn_view_see(&view, &record, NULL, &foreign);
        CHECK_INT(view.facts.kernel, KERNEL_ABSENT);
        CHECK(view.foreign);
        CHECK_INT(view.geometry.size, 0);
        turn_view_see(&view, &record, NULL, NULL);
        CHECK_INT(view.facts.kernel, KERNEL_ABSENT);
        CHECK(!view.foreign);
        CHECK_INT(looks, 2);
        return check_report();
}
