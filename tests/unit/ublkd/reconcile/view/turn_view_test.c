/* SPDX-License-Identifier: MIT */
/* turn_view: takes the kernel's answer, keeps the old facts without one, and says which disk has a size. */
#include "ublkd/reconcile/view/turn_view.h"

#include "ublkd/model/device_cookie.h"
#include "tests/unit/check.h"

#include <errno.h>

static const char uid[] = "b0a5c9f2-0000-4000-8000-000000000001";

static void test_what_is_seen(const struct device_record *record)
{
        const struct kernel_device live = {
                .number = 3, .state = KERNEL_STATE_LIVE, .cookie = device_cookie(uid, 1)};
        const struct kernel_device added = {
                .number = 3, .state = KERNEL_STATE_DEAD, .cookie = device_cookie(uid, 1)};
        const struct kernel_device foreign = {.number = 3, .state = KERNEL_STATE_LIVE};
        struct turn_view view = {.worker_seen = PLAN_WORKER_SERVING};

        turn_view_see(&view, record, &live);
        CHECK_INT(view.facts.kernel, KERNEL_LIVE);
        CHECK_INT(view.facts.worker, PLAN_WORKER_SERVING);
        CHECK_INT(view.kernel.number, 3);
        CHECK_INT(turn_view_disk(&view), 3);
        CHECK(!view.foreign);

        /* the kernel does not answer; the worker has exited */
        view.worker_seen = PLAN_WORKER_NONE;
        turn_view_stay(&view);
        CHECK_INT(view.facts.kernel, KERNEL_LIVE);
        CHECK_INT(view.facts.worker, PLAN_WORKER_NONE);
        CHECK_INT(turn_view_disk(&view), 3);

        turn_view_see(&view, record, &added); /* has no size yet */
        CHECK_INT(view.facts.kernel, KERNEL_ADDED);
        CHECK_INT(turn_view_disk(&view), -1);

        turn_view_see(&view, record, &foreign);
        CHECK_INT(view.facts.kernel, KERNEL_ABSENT);
        CHECK(view.foreign);
        CHECK_INT(turn_view_disk(&view), -1);
        turn_view_see(&view, record, NULL);
        CHECK_INT(view.facts.kernel, KERNEL_ABSENT);
        CHECK(!view.foreign);
        CHECK_INT(turn_view_disk(&view), -1);
}

static void test_the_size(struct device_record *record)
{
        const struct device_geometry disk = {.size = 4096, .block_size = 512, .wanted = 7};
        const struct disk_params params = {.size_max = 16384};
        struct device_spec spec = {.options.size = 8192};
        struct turn_view view = {};

        turn_view_measure(
                &view, record, &params, &disk); /* a record without a spec that this ublkd can read */
        CHECK_INT(view.geometry.size, 4096);
        CHECK_INT(view.geometry.block_size, 512);
        CHECK_INT(view.geometry.wanted, 0);
        record->spec = &spec;
        turn_view_measure(&view, record, &params, &disk);
        CHECK_INT(view.geometry.wanted, 8192);
        spec.options.size = 0;
        turn_view_measure(&view, record, &params, &disk);
        CHECK_INT(view.geometry.wanted, 16384);
        turn_view_measure(&view, record, NULL, &(const struct device_geometry){.error = -ENODEV});
        CHECK_INT(view.geometry.error, -ENODEV);
        CHECK_INT(view.geometry.size, 0);
        CHECK_INT(view.geometry.wanted, 0);
        record->spec = NULL;
}

static void test_a_device_is_off_without_a_disk_if_disabled_or_stopped(struct device_record *record)
{
        struct device_spec spec = {.options.enabled = false};
        struct turn_view view = {.facts.kernel = KERNEL_ABSENT};

        CHECK(!turn_view_is_off(&view, record)); /* without a spec that this ublkd can read */
        record->spec = &spec;
        CHECK(turn_view_is_off(&view, record));
        view.facts.kernel = KERNEL_LIVE; /* its disk is not gone yet */
        CHECK(!turn_view_is_off(&view, record));
        spec.options.enabled = true;
        view.facts.kernel = KERNEL_ABSENT;
        CHECK(!turn_view_is_off(&view, record));
        record->stopped = true; /* until the next boot */
        CHECK(turn_view_is_off(&view, record));
        record->stopped = false;
        record->spec = NULL;
}

int main(void)
{
        struct device_record record = {.number = 3};

        memcpy(record.uid, uid, sizeof(uid));
        test_what_is_seen(&record);
        test_the_size(&record);
        test_a_device_is_off_without_a_disk_if_disabled_or_stopped(&record);
        return check_report();
}
