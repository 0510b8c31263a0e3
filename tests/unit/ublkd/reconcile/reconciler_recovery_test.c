/* SPDX-License-Identifier: MIT */
/* On its way from a dead worker to a live disk ublkd does not ask for what it knows; and no disk of another program gets
 * its worker, whenever that takes the number. */
#include "tests/unit/ublkd/reconcile/reconciler_world.h"

#include "tests/stand_in/worker_stand_in.h"
#include "tests/unit/check.h"

#include <time.h>

enum {
        DRIVER_MSEC = 10,    /* a driver that cancels late has had its time by then */
        WELL_LATER_MSEC = 60 /* a look is old by then */
};

/* How far the clock of ublkd has been put forward; the timers of its loop are the kernel's. While it is an hour ahead, no
 * timer that is set fires. */
static uint64_t ahead_msec;

int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
        int r = __real_clock_gettime(clock, ret);
        uint64_t nsec = (uint64_t)ret->tv_nsec;

        if (clock != CLOCK_MONOTONIC)
                return r;
        nsec += ahead_msec % 1000 * 1000000;
        ret->tv_sec += (time_t)(ahead_msec / 1000 + nsec / 1000000000);
        ret->tv_nsec = (long)(nsec % 1000000000);
        return r;
}

/* The worker of a live disk is dead, and ublkd has started the next one. */
static void lose_worker(struct world *world, uint64_t features)
{
        ahead_msec = 0;
        world_new(world);
        world->host.features = features;
        world_put_loop(world, "data", "");
        world_bring_up(world, "data", "file:1");
        ahead_msec = 60 * 60 * 1000;
        fake_kernel.looks = fake_kernel.begun = 0;
        fake_worker_die(fake_worker("data"));
        world_settle(world, 0);
        CHECK_INT(fake_kernel.looks, 1);
        CHECK(fake_worker("data"));
}

/* Let the driver answer no question until the next worker has GO. */
static void open_blindly(struct world *world)
{
        fake_kernel.get_info_error = -EIO;
        fake_worker_open(fake_worker("data"), "file:1");
        world_settle(world, 5);
        fake_kernel.get_info_error = 0;
}

static bool a_worker_has_go(void)
{
        return fake_worker("data") && fake_worker("data")->number >= 0;
}

static void check_stranger(void)
{
        CHECK(fake_disks[0].exists && fake_disks[0].cookie == FAKE_FOREIGN);
        CHECK(!fake_disks[0].begun);
        CHECK_INT(fake_disks[0].state, KERNEL_STATE_QUIESCED);
}

static void the_kernel_is_asked_once(void)
{
        struct world world;

        lose_worker(&world, WORLD_QUIESCES);
        open_blindly(&world);
        CHECK_INT(fake_worker("data")->number, 0);
        CHECK_INT(fake_disks[0].state, KERNEL_STATE_QUIESCED);
        fake_worker_ready(fake_worker("data"));
        world_wait_reason(&world, "data", REASON_LIVE);
        CHECK_INT(fake_disks[0].state, KERNEL_STATE_LIVE);
        CHECK_INT(fake_kernel.begun, 1);
        world_free(&world);
}

/* What the driver shows counts there: see attempt_may_begin(). */
static void a_driver_that_cancels_late_is_asked(void)
{
        struct world world;

        lose_worker(&world, WORLD_RECOVERS);
        ahead_msec += DRIVER_MSEC; /* the time that such a driver has would not keep ublkd from it */
        open_blindly(&world);
        CHECK(!a_worker_has_go());
        CHECK_INT(fake_kernel.begun, 0);
        world_wait_reason(&world, "data", REASON_CONTROL_PLANE);
        world_free(&world);
}

/* The program was replaced by an older one, and that helper runs since. */
static void with_an_older_helper_the_kernel_is_asked(void)
{
        struct world world;

        lose_worker(&world, WORLD_QUIESCES);
        ctl_stand_in_guards = false;
        open_blindly(&world);
        CHECK(!a_worker_has_go());
        CHECK_INT(fake_kernel.begun, 0);
        ctl_stand_in_guards = true;
        world_free(&world);
}

/* Another program has deleted the disk meanwhile, and made one with its number: the driver gets no command for that. */
static void a_stranger_that_came_before_the_recovery_gets_no_command(void)
{
        struct world world;

        lose_worker(&world, WORLD_QUIESCES);
        fake_disks[0] = (struct kernel_disk){};
        fake_disk_comes_down(0);
        fake_worker_open(fake_worker("data"), "file:1");
        world_settle(&world, 5);
        CHECK_INT(fake_kernel.begun, 0);
        CHECK(fake_kernel.looks > 1);
        CHECK(!a_worker_has_go());
        check_stranger();
        world_free(&world);
}

/* START_USER_RECOVERY was for the disk of ublkd, GO would be for the other one. */
static void a_stranger_that_came_with_the_recovery_gets_no_worker(void)
{
        struct world world;

        lose_worker(&world, WORLD_QUIESCES);
        fake_kernel.replaces = true;
        fake_worker_open(fake_worker("data"), "file:1");
        world_settle(&world, 5);
        CHECK_INT(fake_kernel.begun, 1);
        CHECK(fake_kernel.looks > 1);
        CHECK(!a_worker_has_go());
        check_stranger();
        world_free(&world);
}

/* The number of a disk that a worker has open is not free; here, the worker was late to open it. */
static void a_stranger_that_came_before_the_worker_does_not_go_live(void)
{
        struct world world;

        lose_worker(&world, WORLD_QUIESCES);
        open_blindly(&world);
        CHECK(a_worker_has_go());
        fake_disk_comes_down(0);
        fake_disks[0].begun = true; /* by its own server, and a worker can fetch */
        fake_worker_ready(fake_worker("data"));
        world_settle(&world, 5);
        CHECK(!fake_worker("data") || fake_worker_stage(fake_worker("data")) != WORKER_STAGE_SERVING);
        CHECK_INT(fake_disks[0].state, KERNEL_STATE_QUIESCED);
        world_free(&world);
}

static void no_disk_is_left(void)
{
        struct world world;

        lose_worker(&world, WORLD_QUIESCES);
        fake_disks[0] = (struct kernel_disk){.holder = NO_PROCESS};
        fake_worker_open(fake_worker("data"), "file:1");
        world_settle(&world, 5);
        CHECK_INT(fake_kernel.begun, 0);
        CHECK(fake_kernel.looks > 1);
        world_free(&world);
}

static void after_a_while_the_kernel_is_asked_again(void)
{
        struct world world;

        lose_worker(&world, WORLD_QUIESCES);
        ahead_msec += WELL_LATER_MSEC;
        open_blindly(&world);
        CHECK(fake_kernel.looks > 1);
        CHECK_INT(fake_kernel.begun, 0);
        CHECK(!a_worker_has_go());
        world_free(&world);
}

/* What ublkd saw before a question without an answer does not count. */
static void a_kernel_that_has_not_answered_is_asked_again(void)
{
        struct world world;

        lose_worker(&world, WORLD_QUIESCES);
        fake_kernel.get_info_error = -EIO;
        ctl_stand_in_releases(0); /* an event, so there is a turn */
        world_settle(&world, 1);
        CHECK(fake_kernel.looks > 1);
        open_blindly(&world);
        CHECK_INT(fake_kernel.begun, 0);
        CHECK(!a_worker_has_go());
        world_free(&world);
}

/* The same on the way from GO to the end. */
static void a_recovery_is_not_ended_without_an_answer(void)
{
        struct world world;

        lose_worker(&world, WORLD_QUIESCES);
        open_blindly(&world);
        CHECK(a_worker_has_go());
        fake_kernel.get_info_error = -EIO;
        ctl_stand_in_releases(0);
        world_settle(&world, 1);
        fake_worker_ready(fake_worker("data"));
        world_settle(&world, 5);
        CHECK_INT(fake_disks[0].state, KERNEL_STATE_QUIESCED);
        world_free(&world);
}

/* The user wants the disk no more: no other command than the recovery goes by what was seen earlier. */
static void a_later_request_asks(void)
{
        struct world world;
        unsigned looks;

        lose_worker(&world, WORLD_QUIESCES);
        looks = fake_kernel.looks;
        CHECK_INT(device_store_request_delete(world.store, "data", true), 0);
        open_blindly(&world);
        CHECK(fake_kernel.looks > looks);
        CHECK_INT(fake_kernel.begun, 0);
        CHECK(fake_disks[0].exists);
        CHECK_INT(fake_disks[0].state, KERNEL_STATE_QUIESCED);
        world_free(&world);
}

/* The first worker of a disk, and the one that recovers it. The disk of the store is not known to take a limit. */
static void each_worker_is_started_with_its_limits(void)
{
        struct world world;

        ahead_msec = 0;
        world_new(&world);
        world_put_loop(&world, "data",
                ",\"resources\":{\"memoryMax\":67108864,\"pidsMax\":99,\"ioMax\":{\"read\":{\"iops\":7}}}");
        world_bring_up(&world, "data", "file:1");
        CHECK_INT(worker_stand_in_limits.memory_max, 64 << 20);
        worker_stand_in_limits = (struct group_limits){};
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 0);
        CHECK(fake_worker("data"));
        CHECK_INT(worker_stand_in_limits.memory_max, 64 << 20);
        CHECK_INT(worker_stand_in_limits.pids_max, 99);
        CHECK_INT(worker_stand_in_limits.io.read_ios, 7);
        CHECK_INT(worker_stand_in_limits.disk, 0);
        world_free(&world);
}

int main(void)
{
        the_kernel_is_asked_once();
        a_driver_that_cancels_late_is_asked();
        with_an_older_helper_the_kernel_is_asked();
        a_stranger_that_came_before_the_recovery_gets_no_command();
        a_stranger_that_came_with_the_recovery_gets_no_worker();
        a_stranger_that_came_before_the_worker_does_not_go_live();
        no_disk_is_left();
        after_a_while_the_kernel_is_asked_again();
        a_kernel_that_has_not_answered_is_asked_again();
        a_recovery_is_not_ended_without_an_answer();
        a_later_request_asks();
        each_worker_is_started_with_its_limits();
        return check_report();
}
