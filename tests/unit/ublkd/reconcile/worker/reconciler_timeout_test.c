/* SPDX-License-Identifier: MIT */
/* The I/O timeout of a disk, and the limits: the kernel lets no request begin while it sets the one, so the others hold no
 * request back before. The setter of timeouts is pretended. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/reconcile/reconciler_world.h"
#include "ublkd/proto/device_region.h"
#include "ublkd/reconcile/reconciler_events.h"

#include <errno.h>

#define LIMITS(iops) ",\"limits\":{\"write\":{\"iops\":" #iops "}}"

static const char *const names[] = {"data"};
static int nothing; /* its address is a disk_timeout */

static struct {
        unsigned count;
        int number;
        uint64_t delay;
        uint64_t limit; /* in force when it was asked for */
        const struct region_control *control;
} asked;

int __wrap_disk_timeout_shorten(struct disk_timeout *timeout, int number, uint64_t delay);
int __wrap_disk_timeout_shorten(struct disk_timeout *timeout, int number, uint64_t delay)
{
        CHECK((void *)timeout == &nothing);
        asked.count++;
        asked.number = number;
        asked.delay = delay;
        if (asked.control)
                asked.limit = asked.control->values.limits[REGION_WRITE].per_second[REGION_BUCKET_REQUESTS];
        return 0;
}

static uint64_t limit_of(const struct region_control *control)
{
        return control->values.limits[REGION_WRITE].per_second[REGION_BUCKET_REQUESTS];
}

static bool converged(const struct world *world)
{
        return world_record(world, "data")->status.converged;
}

static void answer(struct world *world, int error)
{
        reconciler_timeout_done(world->reconciler, asked.number, error);
        world_settle(world, 5);
}

static const struct region_control *bring_up(struct world *world, uint64_t features, const char *more)
{
        const struct region_control *control;

        memset(&asked, 0, sizeof(asked));
        world_new(world);
        world_stop_reconciler(world);
        world->host.features = features;
        world->disk_timeout = (struct disk_timeout *)&nothing;
        world_start_reconciler(world);
        control = world_bring_up_with_region(world, more);
        asked.control = control;
        return control;
}

static void recover(struct world *world)
{
        fake_worker_die(fake_worker("data"));
        world_settle(world, 5);
        world_churn(world, names, 1, "file:1");
        CHECK_INT(world_phase(world, "data"), PHASE_LIVE);
}

static void limits_come_after_the_timeout(void)
{
        struct world world;
        const struct region_control *control = bring_up(&world, WORLD_RECOVERS, LIMITS(7));

        CHECK_INT(asked.count, 1);
        CHECK_INT(asked.delay, 0);
        CHECK_INT(limit_of(control), 0);
        CHECK(!converged(&world)); /* who waits for the disk finds it with its limits */
        world_put_loop(&world, "data", LIMITS(9));
        world_settle(&world, 5);
        CHECK_INT(limit_of(control), 0);
        answer(&world, 0);
        CHECK_INT(limit_of(control), 9);
        CHECK(converged(&world));
        world_free(&world);
}

/* A client that waits for the disk waits for no answer of the kernel, and has the limits all the same. */
static void limits_come_while_the_driver_does_not_answer(void)
{
        struct world world;
        const struct region_control *control = bring_up(&world, WORLD_RECOVERS, LIMITS(7));

        fake_kernel.get_info_error = -EIO;
        answer(&world, 0);
        CHECK_INT(limit_of(control), 7);
        fake_kernel.get_info_error = 0;
        world_free(&world);
}

/* The timeout stays with the disk: a recovery does not lift the limits. */
static void a_recovered_disk_has_its_timeout(void)
{
        struct world world;
        const struct region_control *control = bring_up(&world, WORLD_RECOVERS, LIMITS(7));

        answer(&world, 0);
        recover(&world);
        CHECK_INT(asked.count, 1);
        CHECK_INT(limit_of(control), 7);
        CHECK(converged(&world));
        world_free(&world);
}

/* A kernel that has not answered in time was perhaps not asked: no event, but another look. */
static void after_a_failure_the_next_recovery_tries_again(int error, unsigned events)
{
        struct world world;
        const struct region_control *control = bring_up(&world, WORLD_RECOVERS, LIMITS(7));

        answer(&world, error);
        CHECK_INT(world_count_events(&world, REASON_TIMEOUT_NOT_SET), events);
        CHECK_INT(limit_of(control), 7);
        CHECK(converged(&world));
        recover(&world);
        CHECK_INT(asked.count, 2);
        CHECK_INT(asked.limit, 0);
        CHECK_INT(asked.delay, 0);
        CHECK_INT(limit_of(control), 0);
        answer(&world, 0);
        CHECK_INT(limit_of(control), 7);
        world_free(&world);
}

/* An earlier ublkd has most likely set it: without limits that has time. */
static void an_adopted_disk_is_looked_at_when_it_is_recovered(const char *more, uint64_t limit, bool at_once)
{
        struct world world;
        const struct region_control *control = bring_up(&world, WORLD_RECOVERS, more);

        answer(&world, 0);
        world_restart_with_workers(&world);
        fake_worker_greet(fake_worker("data"), world_record(&world, "data")->epoch, asked.number);
        world_settle(&world, 5);
        CHECK_INT(asked.count, 1);
        CHECK_INT(limit_of(control), limit);
        CHECK(converged(&world));
        recover(&world);
        CHECK_INT(asked.count, 2);
        CHECK_INT(asked.limit, 0);
        CHECK((asked.delay == 0) == at_once);
        CHECK_INT(converged(&world), !at_once);
        answer(&world, 0);
        CHECK_INT(limit_of(control), limit);
        CHECK(converged(&world));
        world_free(&world);
}

/* A driver with QUIESCE learns of each death without it, and setting it would hold up the disk for nothing. */
static void a_newer_driver_needs_none(void)
{
        struct world world;
        const struct region_control *control = bring_up(&world, WORLD_QUIESCES, LIMITS(7));

        CHECK_INT(asked.count, 0);
        CHECK_INT(limit_of(control), 7);
        CHECK(converged(&world));
        recover(&world);
        CHECK_INT(asked.count, 0);
        CHECK_INT(limit_of(control), 7);
        world_free(&world);
}

int main(void)
{
        limits_come_after_the_timeout();
        limits_come_while_the_driver_does_not_answer();
        a_recovered_disk_has_its_timeout();
        after_a_failure_the_next_recovery_tries_again(-EROFS, 1);
        after_a_failure_the_next_recovery_tries_again(-ETIMEDOUT, 0);
        an_adopted_disk_is_looked_at_when_it_is_recovered(LIMITS(7), 7, true);
        an_adopted_disk_is_looked_at_when_it_is_recovered("", 0, false);
        a_newer_driver_needs_none();
        return check_report();
}
