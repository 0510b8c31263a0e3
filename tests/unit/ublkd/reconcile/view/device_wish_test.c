/* SPDX-License-Identifier: MIT */
/* device_wish: each field of the wish depends on its facts, and on nothing else. */
#include "ublkd/reconcile/view/device_wish.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/kernel/kernel_feature.h"
#include "ublkd/model/device_cookie.h"

#include "tests/unit/check.h"
#include "tests/unit/spec_of.h"

#include <errno.h>

enum { EPOCH = 2, NOW = 1000 };

static const char uid[] = "b0a5c9f2-0000-4000-8000-000000000001";

static const struct row {
        const char *what;
        const char *document; /* NULL: the record has no spec */
        struct turn_view turn;
        uint16_t epoch_of_disk; /* 0: that of the record */
        bool deleting, forced, held_in_this_boot, recover_requested, old, outdated, without_features,
                allows_tests;
        struct plan_wish wanted; /* the fields below that a row does not name are false or 0 */
} rows[] = {
        {.what = "a disk that does not exist",
         .document = "{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\"}",
         .wanted = {.enabled = true}},
        {.what = "disabled",
         .document = "{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\",\"enabled\":"
                            "false}"},
        {.what = "quarantined"},
        {.what = "deleted, without a spec", .deleting = true, .wanted = {.deleting = true}},
        {.what = "deleted by force",
         .document = "{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\"}",
         .deleting = true,
         .forced = true,
         .wanted = {.deleting = true, .forced = true, .enabled = true}},
        {.what = "a new disk that the driver cannot make",
         .document = "{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\"}",
         .turn = {.facts.kernel = KERNEL_ADDED},
         .without_features = true,
         .wanted = {.kernel = KERNEL_ADDED}},
        {.what = "a live disk stays, whatever the driver can",
         .document = "{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\"}",
         .turn = {.facts = {.kernel = KERNEL_LIVE, .worker = PLAN_WORKER_SERVING}},
         .without_features = true,
         .wanted = {.enabled = true, .kernel = KERNEL_LIVE, .worker = PLAN_WORKER_SERVING}},
        {.what = "a target for tests",
         .document = "{\"name\":\"data\",\"target\":{\"type\":\"fault\",\"child\":{\"type\":\"null\"}}"
                            ",\"size\":\"1MiB\"}"},
        {.what = "a target for tests that is allowed",
         .document = "{\"name\":\"data\",\"target\":{\"type\":\"fault\",\"child\":{\"type\":\"null\"}}"
                            ",\"size\":\"1MiB\"}", .allows_tests = true,
         .wanted = {.enabled = true}},
        {.what = "a target for tests whose disk exists",
         .document = "{\"name\":\"data\",\"target\":{\"type\":\"fault\",\"child\":{\"type\":\"null\"}}"
                            ",\"size\":\"1MiB\"}", .turn = {.facts = {.kernel = KERNEL_DOWN}},
         .wanted = {.enabled = true, .kernel = KERNEL_DOWN}},
        {.what = "a disk of an older epoch",
         .document = "{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\"}",
         .turn = {.facts.kernel = KERNEL_LIVE},
         .epoch_of_disk = EPOCH - 1,
         .wanted = {.enabled = true, .kernel = KERNEL_LIVE, .kernel_is_old = true}},
        {.what = "an absent disk has no epoch",
         .document = "{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\"}",
         .epoch_of_disk = EPOCH - 1,
         .wanted = {.enabled = true}},
        {.what = "manual and held, and asked to recover",
         .document = "{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\","
                            "\"recovery\":{\"trigger\":\"manual\"}}", .held_in_this_boot = true,
         .recover_requested = true,
         .wanted = {.enabled = true, .manual = true, .held = true, .recover_requested = true}},
        {.what = "a worker that is old, and one that is outdated",
         .document = "{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\"}",
         .old = true,
         .outdated = true,
         .wanted = {.enabled = true, .worker_is_old = true, .worker_is_outdated = true}},
        {.what = "a driver that can grow disks",
         .document = "{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\"}",
         .turn = {.facts.kernel = KERNEL_LIVE,
                        .kernel.flags = UINT64_MAX,
                        .geometry = {.size = 4096, .wanted = 8192}},
         .wanted =
                        {.enabled = true, .kernel = KERNEL_LIVE, .size_wanted = 8192, .size_of_disk = 4096}},
        {.what = "a driver that cannot",
         .document = "{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\"}",
         .turn = {.facts.kernel = KERNEL_LIVE, .geometry = {.size = 4096, .wanted = 8192}},
         .wanted = {.enabled = true, .kernel = KERNEL_LIVE, .size_wanted = 8192}},
};

static void check_row(const struct row *row)
{
        struct turn_view turn = row->turn;
        const struct wish_view view = {
                .turn = &turn,
                .boot_id = "this boot",
                .features = row->without_features ? 0 : UINT64_MAX,
                .allows_tests = row->allows_tests,
                .size_of_worker = 512,
                .lost_since = 7,
                .handover_until = 9,
                .worker_is_old = row->old,
                .worker_is_outdated = row->outdated,
        };
        struct device_record record = {
                .deleting = row->deleting,
                .forced = row->forced,
                .recover_requested = row->recover_requested,
                .epoch = EPOCH,
                .spec = row->document ? spec_of(row->document) : NULL,
        };
        const struct plan_wish *wanted = &row->wanted;
        unsigned before = check_failures;
        struct plan_wish wish;

        turn.kernel.cookie = device_cookie(uid, row->epoch_of_disk ? row->epoch_of_disk : EPOCH);
        strcpy(record.held_boot, row->held_in_this_boot ? "this boot" : "another boot");
        wish = device_wish(&record, &view, NOW);
        CHECK_INT(wish.deleting, wanted->deleting);
        CHECK_INT(wish.forced, wanted->forced);
        CHECK_INT(wish.handover_until, row->document ? 9 : 0); /* without a spec no other worker starts */
        CHECK_INT(wish.enabled, wanted->enabled);
        CHECK_INT(wish.kernel_is_old, wanted->kernel_is_old);
        CHECK_INT(wish.worker_is_old, wanted->worker_is_old);
        CHECK_INT(wish.worker_is_outdated, wanted->worker_is_outdated);
        CHECK_INT(wish.manual, wanted->manual);
        CHECK_INT(wish.held, wanted->held);
        CHECK_INT(wish.recover_requested, wanted->recover_requested);
        CHECK_INT(wish.kernel, wanted->kernel);
        CHECK_INT(wish.worker, wanted->worker);
        CHECK_INT(wish.size_wanted, wanted->size_wanted);
        CHECK_INT(wish.size_of_disk, wanted->size_of_disk);
        CHECK_INT(wish.size_of_worker, 512);
        CHECK_INT(wish.lost_since, 7);
        CHECK_INT(wish.now, NOW);
        if (check_failures > before)
                fprintf(stderr, "%s\n", row->what);
        device_spec_free(record.spec);
}

int main(void)
{
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                check_row(&rows[i]);
        return check_report();
}
