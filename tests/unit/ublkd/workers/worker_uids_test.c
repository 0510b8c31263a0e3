/* SPDX-License-Identifier: MIT */
/* The uids of workers over starts of ublkd with other ranges: never one for two disks. */
#include "ublkd/workers/worker_uids.h"

#include "tests/unit/check.h"
#include "tests/unit/remove_tree.h"
#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-id128.h>

static const char uid[] = "0b7a1c9e-0000-4000-8000-1234567890ab";
static bool is_next_boot;

int __real_sd_id128_get_boot(sd_id128_t *ret);
int __wrap_sd_id128_get_boot(sd_id128_t *ret);
int __wrap_sd_id128_get_boot(sd_id128_t *ret)
{
        int r = __real_sd_id128_get_boot(ret);

        if (r >= 0 && is_next_boot)
                ret->bytes[15] ^= 1;
        return r;
}

/* A worker is there as long as its socket and its region have names. */
static void let_worker_live(struct runtime_dir *dir)
{
        const struct device_region_key key = {.queues = 1, .epoch = 1};
        int fd = runtime_dir_bind_worker(dir, uid);

        CHECK(fd >= 0);
        close_fd(fd);
        fd = runtime_dir_ensure_region(dir, uid, &key);
        CHECK(fd >= 0);
        close_fd(fd);
        CHECK_INT(runtime_dir_write_record(dir, uid, "{}"), 0);
}

/* Start with this range. Return the first uid in force; 0: that of the range before stays. */
static uint32_t start(struct runtime_dir *dir, uint32_t first, uint32_t users)
{
        struct worker_confinement confinement = {.first_user = first, .users = users};
        int r = worker_uids_choose(dir, &confinement);

        CHECK(r >= 0);
        return r == 0 ? confinement.first_user : 0;
}

static uint32_t in_force(struct runtime_dir *dir, uint32_t first, uint32_t users)
{
        struct worker_confinement confinement = {.first_user = first, .users = users};

        CHECK_INT(worker_uids_choose(dir, &confinement), 1);
        return confinement.first_user;
}

static void test_the_first_range_is_in_force(struct runtime_dir *dir)
{
        CHECK_INT(start(dir, 70000, 10), 70000);
        let_worker_live(dir);
        CHECK_INT(start(dir, 70000, 10), 70000);
        CHECK_INT(start(dir, 70000, 100), 70000); /* each disk keeps its own */
        CHECK_INT(start(dir, 70000, 5), 70000);
}

/* Before, the disk 0 got the uid that the worker of the disk 1 had from an earlier ublkd. */
static void test_a_range_that_gives_uids_to_other_disks_is_not_in_force(struct runtime_dir *dir)
{
        CHECK_INT(start(dir, 70000, 10), 70000);
        let_worker_live(dir);
        CHECK_INT(in_force(dir, 70001, 10), 70000);
        CHECK_INT(in_force(dir, 69995, 10), 70000);
        CHECK_INT(in_force(dir, 70009, 1), 70000);
        CHECK_INT(in_force(dir, 60000, 20000), 70000);
        CHECK_INT(start(dir, 70000, 10), 70000);
}

static void test_ranges_apart_follow_each_other(struct runtime_dir *dir)
{
        CHECK_INT(start(dir, 70000, 10), 70000);
        let_worker_live(dir);
        CHECK_INT(start(dir, 70010, 10), 70010);
        CHECK_INT(start(dir, 4294967290, 4), 4294967290);
        CHECK_INT(in_force(dir, 70005, 10), 4294967290); /* workers of both may live */
        CHECK_INT(start(dir, 70000, 10), 70000);
        CHECK_INT(in_force(dir, 70015, 1), 70000);
        for (uint32_t i = 0; i < 100; i++) /* no more are noted than fit */
                (void)worker_uids_choose(
                        dir, &(struct worker_confinement){.first_user = 1000 + i, .users = 1});
        CHECK_INT(in_force(dir, 70005, 10) >= 1000, true);
        CHECK_INT(in_force(dir, 2000, 1) >= 1000, true);
        CHECK_INT(start(dir, 70010, 10), 70010); /* one that is noted needs no room */
        CHECK_INT(in_force(dir, 2000, 1), 70010);
}

static void test_without_workers_each_range_is_free(struct runtime_dir *dir)
{
        CHECK_INT(start(dir, 70000, 10), 70000);
        CHECK_INT(start(dir, 70001, 10), 70001);
        let_worker_live(dir);
        CHECK_INT(in_force(dir, 70000, 10), 70001);
        is_next_boot = true; /* the runtime directory may survive it, and no worker does */
        CHECK_INT(start(dir, 70000, 10), 70000);
        is_next_boot = false;
        CHECK_INT(runtime_dir_remove_worker(dir, uid), 0);
        CHECK_INT(start(dir, 70001, 10), 70001);
}

int main(void)
{
        static void (*const tests[])(struct runtime_dir *) = {test_the_first_range_is_in_force,
                test_a_range_that_gives_uids_to_other_disks_is_not_in_force,
                test_ranges_apart_follow_each_other, test_without_workers_each_range_is_free};

        for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
                char path[] = "/tmp/worker_uids_test.XXXXXX";
                struct problem_list problems = {};
                struct runtime_dir *dir = NULL;

                if (!mkdtemp(path) || !CHECK_INT(runtime_dir_open(path, &dir, &problems), 0))
                        return 1;
                tests[i](dir);
                runtime_dir_free(dir);
                CHECK_INT(remove_tree(path), 0);
        }
        return check_report();
}
