/* SPDX-License-Identifier: MIT */
/* device_partitions: a disk is scanned when something may be new, what came of it is reported once, and a stop waits for
 * the process that has the disk open, but not for long. The scan is a fake. */
#include "ublkd/reconcile/disk/device_partitions.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"

#include "tests/unit/check.h"

static struct {
        struct partition_scan_events events;
        bool under_way, has_process, shown;
        int begun, cancelled, number;
} scan;
static int reported, left;
static enum condition_reason reported_reason;
static struct device_spec spec = {.options.partitions = true};
static struct device_record record = {.spec = &spec, .number = 3};
static struct surroundings env;

int __wrap_partition_scan_new(struct partition_scanner *scanner, const struct partition_scan_events *events,
        struct partition_scan **ret);
struct partition_scan *__wrap_partition_scan_free(struct partition_scan *one);
void __wrap_partition_scan_begin(struct partition_scan *one, int number, bool shown);
bool __wrap_partition_scan_is_under_way(const struct partition_scan *one);
void __wrap_partition_scan_cancel(struct partition_scan *one);
bool __wrap_partition_scan_has_process(const struct partition_scan *one);
void __wrap_device_emit(const struct managed_device *device, enum event_type type,
        enum condition_reason reason, const char *format, ...);

int __wrap_partition_scan_new(struct partition_scanner *scanner, const struct partition_scan_events *events,
        struct partition_scan **ret)
{
        (void)scanner;
        scan.events = *events;
        *ret = (struct partition_scan *)&scan;
        return 0;
}

struct partition_scan *__wrap_partition_scan_free(struct partition_scan *one)
{
        (void)one;
        return NULL;
}

void __wrap_partition_scan_begin(struct partition_scan *one, int number, bool shown)
{
        (void)one;
        CHECK(!scan.under_way);
        scan.under_way = true;
        scan.begun++;
        scan.number = number;
        scan.shown = shown;
}

bool __wrap_partition_scan_is_under_way(const struct partition_scan *one)
{
        (void)one;
        return scan.under_way;
}

void __wrap_partition_scan_cancel(struct partition_scan *one)
{
        (void)one;
        scan.under_way = false;
        scan.cancelled++;
}

bool __wrap_partition_scan_has_process(const struct partition_scan *one)
{
        (void)one;
        return scan.has_process;
}

void __wrap_device_emit(const struct managed_device *device, enum event_type type,
        enum condition_reason reason, const char *format, ...)
{
        (void)device;
        (void)format;
        CHECK_INT(type, EVENT_WARNING);
        reported++;
        reported_reason = reason;
}

static void end_scan(const struct partition_outcome *outcome)
{
        scan.under_way = false;
        scan.events.done(scan.events.userdata, outcome);
}

static void begin(struct managed_device *device)
{
        memset(&scan, 0, sizeof(scan));
        reported = left = 0;
        *device = (struct managed_device){
                .env = &env, .turn.state = TURN_QUEUED, .view.geometry.size = 1 << 20};
        CHECK(device_partitions_follow(device, &record) == UINT64_MAX);
        CHECK_INT(scan.begun, 1);
        CHECK_INT(scan.number, 3);
        CHECK(scan.shown);
}

static enum condition_reason condition_of(const struct managed_device *device)
{
        struct device_condition condition = {};

        CHECK_INT(device_partitions_condition(device, &record, &condition), 0);
        free(condition.message);
        CHECK(condition.status == CONDITION_FALSE || condition.status == CONDITION_ABSENT);
        return condition.reason;
}

static void test_a_disk_is_scanned_when_something_may_be_new(void)
{
        struct managed_device device;

        begin(&device);
        CHECK(device_partitions_follow(&device, &record) == UINT64_MAX); /* one at a time */
        end_scan(&(const struct partition_outcome){});
        CHECK(device_partitions_follow(&device, &record) == UINT64_MAX);
        CHECK_INT(scan.begun, 1);
        device.view.geometry.size *= 2;
        CHECK(device_partitions_follow(&device, &record) == UINT64_MAX);
        CHECK_INT(scan.begun, 2);
        end_scan(&(const struct partition_outcome){});
        scan.events.written(scan.events.userdata);
        CHECK(device_partitions_follow(&device, &record) < UINT64_MAX); /* in a second */
        CHECK_INT(scan.begun, 2);
        spec.options.partitions = false;
        CHECK(device_partitions_follow(&device, &record) == UINT64_MAX);
        CHECK_INT(scan.begun, 3);
        CHECK(!scan.shown);
        spec.options.partitions = true;
        end_scan(&(const struct partition_outcome){});
        CHECK_INT(reported, 0);
        device_partitions_drop(&device);
}

static void test_trouble_is_reported_once(void)
{
        static const struct {
                struct partition_outcome outcome;
                enum condition_reason reason;
                bool again;
        } cases[] = {
                {{.error = -ETIMEDOUT},                                   REASON_PARTITIONS_UNKNOWN, true },
                {{.error = -EDEADLK},                                     REASON_PARTITIONS_UNKNOWN, true },
                {{.error = -EIO},                                         REASON_PARTITIONS_UNKNOWN, true },
                {{.error = -ETIMEDOUT, .cut_off = true},                  REASON_PARTITIONS_UNKNOWN, true },
                {{.fault = PARTITION_EMPTY, .refused = 1},                REASON_PARTITION_INVALID,  true },
                {{.refused = 1, .refused_number = 2, .refusal = -EBUSY},  REASON_PARTITION_IN_USE,   true },
                {{.refused = 2, .refused_number = 2, .refusal = -EINVAL}, REASON_PARTITION_IN_USE,   true },
                {{.fault = PARTITION_OVERLAPS, .faulty = 2},              REASON_PARTITION_INVALID,  false},
                {{},                                                      REASON_NONE,               false},
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct managed_device device;

                begin(&device);
                end_scan(&cases[i].outcome);
                CHECK_INT(condition_of(&device), cases[i].reason);
                CHECK_INT(reported, cases[i].reason != REASON_NONE);
                CHECK(reported == 0 || reported_reason == cases[i].reason);
                CHECK_INT(device_partitions_follow(&device, &record) < UINT64_MAX, cases[i].again);
                device.view.geometry.size++;
                CHECK(device_partitions_follow(&device, &record) == UINT64_MAX);
                end_scan(&cases[i].outcome);
                CHECK_INT(reported, cases[i].reason != REASON_NONE);
                device.view.geometry.size++;
                (void)device_partitions_follow(&device, &record);
                end_scan(&(const struct partition_outcome){});
                CHECK_INT(condition_of(&device), REASON_NONE);
                device_partitions_drop(&device);
        }
}

static void then(struct managed_device *device)
{
        CHECK(device);
        left++;
}

static void test_a_stop_waits_for_the_process(void)
{
        struct managed_device device;

        begin(&device);
        scan.has_process = true;
        device_partitions_leave(&device, then);
        CHECK_INT(scan.cancelled, 1);
        CHECK_INT(left, 0);
        scan.has_process = false;
        scan.events.gone(scan.events.userdata);
        CHECK_INT(left, 1);
        scan.events.gone(scan.events.userdata);
        CHECK_INT(left, 1);
        /* It was refused: what was not finished begins again. */
        CHECK(device_partitions_follow(&device, &record) == UINT64_MAX);
        CHECK_INT(scan.begun, 2);
        end_scan(&(const struct partition_outcome){});
        device_partitions_leave(&device, then); /* nothing to wait for */
        CHECK_INT(left, 2);
        CHECK(device_partitions_follow(&device, &record) == UINT64_MAX);
        CHECK_INT(scan.begun, 2);
        device_partitions_drop(&device);
}

static void test_a_stop_does_not_wait_for_ever(void)
{
        struct managed_device device;

        begin(&device);
        scan.has_process = true;
        device_partitions_leave(&device, then);
        while (left == 0)
                CHECK(sd_event_run(env.config.event, UINT64_MAX) >= 0);
        device_partitions_leave(&device, then);
        device_partitions_drop(&device); /* the device goes while it waits */
        CHECK_INT(left, 1);
}

static void test_a_disk_that_is_gone(void)
{
        struct managed_device device;

        begin(&device);
        end_scan(&(const struct partition_outcome){.error = -EIO});
        device_partitions_reset(&device);
        CHECK_INT(condition_of(&device), REASON_NONE);
        CHECK(device_partitions_follow(&device, &record) == UINT64_MAX);
        CHECK_INT(scan.begun, 2);
        device_partitions_reset(&device);
        CHECK_INT(scan.cancelled, 1);
        device_partitions_drop(&device);
        env.config.partition_scanner = NULL;
        CHECK(device_partitions_follow(&device, &record) == UINT64_MAX);
        CHECK_INT(scan.begun, 2);
}

int main(void)
{
        CHECK(sd_event_new(&env.config.event) >= 0);
        env.config.partition_scanner = (struct partition_scanner *)&scan;
        test_a_disk_is_scanned_when_something_may_be_new();
        test_trouble_is_reported_once();
        test_a_stop_waits_for_the_process();
        test_a_stop_does_not_wait_for_ever();
        test_a_disk_that_is_gone();
        sd_event_unref(env.config.event);
        return check_report();
}
