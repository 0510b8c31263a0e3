/* SPDX-License-Identifier: MIT */
/* partitions_due: a disk is looked at again only when there may be something new. */
#include "ublkd/reconcile/view/partitions_due.h"

#include "tests/unit/check.h"

static const uint64_t seconds = 1000 * 1000;

static void test_changes(void)
{
        static const struct partitions_key disk = {.cookie = 1, .size = 512, .number = 3, .shown = true};
        struct partitions_history history = {};
        struct partitions_key now = disk;

        CHECK_INT(partitions_due(&history, &now), 0);
        partitions_ended(&history, &disk, PARTITIONS_SETTLED, 100 * seconds);
        CHECK(partitions_due(&history, &now) == UINT64_MAX); /* also after a recovery: it is the same disk */
        now.changes++;
        CHECK_INT(partitions_due(&history, &now), 101 * seconds);
        now.size++;
        CHECK_INT(partitions_due(&history, &now), 0);
        now = disk;
        now.shown = false;
        CHECK_INT(partitions_due(&history, &now), 0);
        now = disk;
        now.cookie++;
        CHECK_INT(partitions_due(&history, &now), 0);
        now = disk;
        now.number++;
        CHECK_INT(partitions_due(&history, &now), 0);
}

static void test_failures(void)
{
        static const struct partitions_key disk = {.cookie = 1, .size = 512, .shown = true};
        static const unsigned pauses[] = {5, 10, 20, 40, 80, 160, 300, 300};
        struct partitions_history history = {};
        struct partitions_key other = disk;

        for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
                partitions_ended(&history, &disk, PARTITIONS_UNKNOWN, 100 * seconds);
                CHECK_INT(partitions_due(&history, &disk), (100 + pauses[i]) * seconds);
        }
        partitions_ended(&history, &disk, PARTITIONS_SETTLED, 100 * seconds);
        CHECK(partitions_due(&history, &disk) == UINT64_MAX);
        partitions_ended(&history, &disk, PARTITIONS_UNKNOWN, 100 * seconds);
        CHECK_INT(partitions_due(&history, &disk), 105 * seconds);
        partitions_ended(&history, &disk, PARTITIONS_UNKNOWN, 100 * seconds);
        other.size++; /* another question: patience begins again */
        partitions_ended(&history, &other, PARTITIONS_UNKNOWN, 100 * seconds);
        CHECK_INT(partitions_due(&history, &other), 105 * seconds);
}

/* A disk that does not answer costs a process for 30 seconds: its owner cannot have it looked at all the time. A change
 * that was refused costs nothing, and another table may be what is wanted. */
static void test_writes_after_a_failure(void)
{
        static const struct partitions_key disk = {.cookie = 1, .size = 512, .shown = true};
        struct partitions_history history = {};
        struct partitions_key written = disk;

        written.changes++;
        partitions_ended(&history, &disk, PARTITIONS_UNKNOWN, 100 * seconds);
        CHECK_INT(partitions_due(&history, &written), 105 * seconds);
        partitions_ended(&history, &disk, PARTITIONS_UNKNOWN, 200 * seconds);
        CHECK_INT(partitions_due(&history, &written), 210 * seconds);
        partitions_ended(&history, &disk, PARTITIONS_REFUSED, 300 * seconds);
        CHECK_INT(partitions_due(&history, &disk), 320 * seconds);
        CHECK_INT(partitions_due(&history, &written), 301 * seconds);
}

int main(void)
{
        test_changes();
        test_failures();
        test_writes_after_a_failure();
        return check_report();
}
