/* SPDX-License-Identifier: MIT */
/* Kept memory belongs to the disk: a worker that takes one over gets what was kept, and the first worker of a disk gets
 * zeroes. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/reconcile/reconciler_world.h"

#include <errno.h>
#include <unistd.h>

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
static bool lost; /* the next region says that what was kept is lost */

int __wrap_runtime_dir_ensure_kept(struct runtime_dir *dir, const char *uid,
        const struct device_region_key *key, const struct region_kept_wish *wish)
{
        int fd;

        asked.workers++;
        snprintf(asked.uid, sizeof(asked.uid), "%s", uid);
        asked.new_disk = wish->new_disk;
        CHECK_STR(wish->target, "loop");
        CHECK(wish->disk_bytes == 0 && wish->queue_bytes == 0);
        fd = failure < 0 ? failure : __real_runtime_dir_ensure_kept(dir, uid, key, wish);
        if (lost && CHECK(fd >= 0))
                CHECK_INT(device_region_write(fd,
                                  offsetof(struct device_region_header, kept)
                                          + offsetof(struct region_kept, lost),
                                  &(uint32_t){REGION_KEPT_LOST}, sizeof(uint32_t)),
                        0);
        return fd;
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

/* As region_kept_format() leaves it where what was kept is lost: region_kept_test.c. */
static void a_loss_is_reported_once(void)
{
        struct world world;

        bring_up(&world);
        CHECK_INT(world_count_events(&world, REASON_KEPT_MEMORY_LOST), 0);
        lost = true;
        kill_worker(&world);
        lost = false;
        world_bring_up(&world, "data", "file:1");
        CHECK_INT(asked.workers, 2);
        CHECK_INT(world_count_events(&world, REASON_KEPT_MEMORY_LOST), 1);
        world_stop_reconciler(&world);
        fake_disks[0].state = KERNEL_STATE_QUIESCED;
        world_start_reconciler(&world);
        world_settle(&world, 0);
        CHECK_INT(asked.workers, 3);
        CHECK_INT(world_count_events(&world, REASON_KEPT_MEMORY_LOST), 1);
        world_free(&world);
}

/* Return whether the region has the loss as one whose event the database may not have. */
static bool is_new(const struct world *world)
{
        int fd = runtime_dir_open_region(world->dir, world_record(world, "data")->uid);
        uint64_t loss;
        int r = region_kept_has_new_loss(fd, &loss);

        CHECK(r >= 0);
        CHECK_INT(close(fd), 0);
        return r > 0;
}

/* ublkd is killed after it has made the event. saved: the database has the event then. worker_lives: the next ublkd adopts
 * the worker. */
static void a_ublkd_dies_with_the_event(bool saved, bool worker_lives)
{
        struct world world;

        world_new_with_database(&world);
        world_put_loop(&world, "data", "");
        world_bring_up(&world, "data", "file:1");
        lost = true;
        kill_worker(&world);
        lost = false;
        world_bring_up(&world, "data", "file:1");
        CHECK_INT(world_count_events(&world, REASON_KEPT_MEMORY_LOST), 1);
        CHECK(is_new(&world));
        if (saved)
                CHECK_INT(device_store_save_events(world.store), 0);
        world_kill_with_workers(&world);
        fake_worker_greet(fake_worker("data"), world_record(&world, "data")->epoch, 0);
        if (worker_lives) {
                world_settle(&world, 20);
        } else {
                kill_worker(&world);
                world_bring_up(&world, "data", "file:1");
        }
        CHECK_INT(world_count_events(&world, REASON_KEPT_MEMORY_LOST), 1);
        CHECK_INT(is_new(&world), !saved);
        CHECK_INT(device_store_save_events(world.store), 0);
        (void)device_store_request_recover(world.store, "data"); /* a turn */
        world_settle(&world, 20);
        CHECK_INT(world_count_events(&world, REASON_KEPT_MEMORY_LOST), 1);
        CHECK(!is_new(&world));
        world_free(&world);
}

/* The worker has the header mapped, and can write another loss there before each look. */
static void a_worker_that_invents_losses_gets_one_event(void)
{
        struct world world;
        int fd;

        bring_up(&world);
        fd = runtime_dir_open_region(world.dir, world_record(&world, "data")->uid);
        for (uint64_t seed = 1; seed <= 20; seed++) {
                const size_t at = offsetof(struct device_region_header, kept);

                CHECK_INT(
                        device_region_write(fd, at + offsetof(struct region_kept, seed), &seed, sizeof(seed)),
                        0);
                CHECK_INT(device_region_write(fd, at + offsetof(struct region_kept, lost),
                                  &(uint32_t){REGION_KEPT_LOST}, sizeof(uint32_t)),
                        0);
                (void)device_store_request_recover(world.store, "data"); /* a turn */
                world_settle(&world, 20);
        }
        CHECK_INT(world_count_events(&world, REASON_KEPT_MEMORY_LOST), 1);
        CHECK_INT(close(fd), 0);
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
        a_loss_is_reported_once();
        for (unsigned i = 0; i < 4; i++)
                a_ublkd_dies_with_the_event(i & 1, i & 2);
        a_worker_that_invents_losses_gets_one_event();
        no_worker_without_it();
        return check_report();
}
