/* SPDX-License-Identifier: MIT */
/* Kept memory belongs to the disk: a worker that takes one over gets what was kept, and the first worker of a disk gets
 * zeroes. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/reconcile/reconciler_world.h"

#include <errno.h>

int __wrap_runtime_dir_ensure_kept(struct runtime_dir *dir, const char *uid,
        const struct device_region_key *key, const struct region_kept_wish *wish);
int __real_runtime_dir_ensure_kept(struct runtime_dir *dir, const char *uid,
        const struct device_region_key *key, const struct region_kept_wish *wish);

/* Of the last worker that was started. */
static struct {
        unsigned workers;
        char uid[64];
        bool new_disk;
} asked;
static int failure;

int __wrap_runtime_dir_ensure_kept(struct runtime_dir *dir, const char *uid,
        const struct device_region_key *key, const struct region_kept_wish *wish)
{
        asked.workers++;
        snprintf(asked.uid, sizeof(asked.uid), "%s", uid);
        asked.new_disk = wish->new_disk;
        CHECK_STR(wish->target, "loop");
        CHECK(wish->disk_bytes == 0 && wish->queue_bytes == 0);
        return failure < 0 ? failure : __real_runtime_dir_ensure_kept(dir, uid, key, wish);
}

static void bring_up(struct world *world)
{
        asked.workers = 0;
        world_new(world);
        world_put_loop(world, "data", "");
        world_bring_up(world, "data", "file:1");
        CHECK_INT(asked.workers, 1);
        CHECK(asked.new_disk);
}

static void kill_worker(struct world *world)
{
        fake_worker_die(fake_worker("data"));
        fake_disks[0].state = KERNEL_STATE_QUIESCED;
        world_settle(world, 0);
}

static void handed_to_the_next_worker(void)
{
        struct world world;

        bring_up(&world);
        kill_worker(&world);
        world_bring_up(&world, "data", "file:1");
        CHECK_INT(asked.workers, 2);
        CHECK(!asked.new_disk);
        /* ublkd and the worker die, in this order. */
        world_stop_reconciler(&world);
        fake_disks[0].state = KERNEL_STATE_QUIESCED;
        world_start_reconciler(&world);
        world_settle(&world, 0);
        CHECK_INT(asked.workers, 3);
        CHECK(!asked.new_disk);
        CHECK_STR(asked.uid, world_record(&world, "data")->uid);
        world_free(&world);
}

static void zeroed_for_another_disk(void)
{
        static const char *const names[] = {"data"};
        struct world world;

        bring_up(&world);
        world_put_loop(&world, "data", ",\"enabled\":false");
        world_settle(&world, 20);
        world_churn(&world, names, 1, "file:1");
        CHECK_INT(world_phase(&world, "data"), PHASE_DISABLED);
        world_put_loop(&world, "data", "");
        world_bring_up(&world, "data", "file:1");
        CHECK_INT(asked.workers, 2);
        CHECK(asked.new_disk);
        world_free(&world);
}

/* The worker that serves keeps its own. */
static void a_preflight_has_memory_of_its_own(void)
{
        struct world world;

        bring_up(&world);
        CHECK_INT(device_store_request_restart(world.store, "data", false), 0);
        world_settle(&world, 20);
        CHECK(fake_worker("(preflight)"));
        CHECK_INT(asked.workers, 2);
        CHECK(asked.new_disk);
        CHECK(strcmp(asked.uid, world_record(&world, "data")->uid) != 0);
        world_free(&world);
}

static void no_worker_without_it(void)
{
        struct world world;

        bring_up(&world);
        failure = -ENOSPC;
        kill_worker(&world);
        CHECK(asked.workers > 1);
        CHECK(!fake_worker("data"));
        CHECK(world_phase(&world, "data") != PHASE_LIVE);
        failure = 0;
        world_free(&world);
}

int main(void)
{
        handed_to_the_next_worker();
        zeroed_for_another_disk();
        a_preflight_has_memory_of_its_own();
        no_worker_without_it();
        return check_report();
}
