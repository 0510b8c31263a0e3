/* SPDX-License-Identifier: MIT */
/* device_node: a new disk waits for udev, but not for long, and not for one that is not there or does nothing. What udev
 * does is pretended. */
#include "ublkd/reconcile/disk/device_node.h"
#include "ublkd/base/clock.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"

#include "tests/unit/check.h"

enum { LATE_USEC = 6 * 1000 * 1000 };

static bool has_udev;
static int missed, events;
static struct surroundings env;

bool __wrap_disk_watch_has_udev(const struct disk_watch *watch);
void __wrap_disk_watch_missed_udev(struct disk_watch *watch);
void __wrap_device_emit(const struct managed_device *device, enum event_type type,
        enum condition_reason reason, const char *format, ...);

bool __wrap_disk_watch_has_udev(const struct disk_watch *watch)
{
        (void)watch;
        return has_udev;
}

void __wrap_disk_watch_missed_udev(struct disk_watch *watch)
{
        (void)watch;
        missed++;
}

void __wrap_device_emit(const struct managed_device *device, enum event_type type,
        enum condition_reason reason, const char *format, ...)
{
        (void)device;
        (void)format;
        CHECK_INT(type, EVENT_WARNING);
        CHECK_INT(reason, REASON_UDEV_LATE);
        events++;
}

static struct managed_device device_with(bool udev)
{
        has_udev = udev;
        missed = events = 0;
        return (struct managed_device){.env = &env};
}

static void without_udev_nothing_waits(void)
{
        struct managed_device device = device_with(false);

        device_node_await_udev(&device);
        device_node_appeared(&device, true);
        CHECK(!device_node_awaits_udev(&device));
        CHECK(device_node_wait(&device, monotonic_now()) == UINT64_MAX);
        CHECK_INT(events, 0);
}

static void a_new_disk_waits_until_udev_is_done(void)
{
        struct managed_device device = device_with(true);
        uint64_t before = monotonic_now();

        CHECK(!device_node_udev_done(&device));
        device_node_await_udev(&device);
        device_node_appeared(&device, true);
        CHECK(device_node_awaits_udev(&device));
        CHECK(device_node_wait(&device, monotonic_now()) > before);
        CHECK(device_node_udev_done(&device));
        CHECK(!device_node_awaits_udev(&device));
        CHECK(device_node_wait(&device, before + LATE_USEC) == UINT64_MAX);
        CHECK_INT(events, 0);
}

/* The kernel announces the disk before it answers START_DEV. */
static void udev_may_be_done_before_the_command(void)
{
        struct managed_device device = device_with(true);

        device_node_await_udev(&device);
        CHECK(device_node_udev_done(&device));
        device_node_appeared(&device, true);
        CHECK(!device_node_awaits_udev(&device));
}

static void a_disk_that_did_not_start_waits_for_nothing(void)
{
        struct managed_device device = device_with(true);

        device_node_await_udev(&device);
        device_node_appeared(&device, false);
        CHECK(!device_node_awaits_udev(&device));
}

static void a_recovered_disk_waits_for_nothing(void)
{
        struct managed_device device = device_with(true);

        device_node_appeared(&device, true);
        CHECK(!device_node_awaits_udev(&device));
}

static void a_late_udev_is_reported_once(void)
{
        struct managed_device device = device_with(true);

        device_node_await_udev(&device);
        device_node_appeared(&device, true);
        for (int i = 0; i < 2; i++)
                CHECK(device_node_wait(&device, monotonic_now() + LATE_USEC) == UINT64_MAX);
        CHECK(!device_node_awaits_udev(&device));
        CHECK_INT(events, 1);
        CHECK_INT(missed, 1);
}

int main(void)
{
        without_udev_nothing_waits();
        a_new_disk_waits_until_udev_is_done();
        udev_may_be_done_before_the_command();
        a_disk_that_did_not_start_waits_for_nothing();
        a_recovered_disk_waits_for_nothing();
        a_late_udev_is_reported_once();
        return check_report();
}
