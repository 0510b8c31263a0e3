/* SPDX-License-Identifier: MIT */
/* A worker that ublkd kills for what it sent: an event names that, and its device waits before it starts another. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/reconcile/reconciler_world.h"
#include "ublkd/base/clock.h"

#include <errno.h>

static unsigned count_events(const struct world *world, enum condition_reason reason)
{
        const struct event_log *log = device_store_events(world->store);
        unsigned count = 0;

        for (size_t i = 0; i < event_log_count(log); i++)
                if (event_log_at(log, i)->reason == reason) {
                        CHECK_INT(event_log_at(log, i)->type, EVENT_WARNING);
                        count++;
                }
        return count;
}

static void say_ready(struct fake_worker *worker)
{
        stand_in_says(worker->index, &(const struct worker_msg){.type = WORKER_MSG_READY}, -1);
}

static void world_new_live(struct world *world)
{
        world_new(world);
        world_put_loop(world, "data", "");
        world_bring_up(world, "data", "file:1");
        CHECK_INT(world_phase(world, "data"), PHASE_LIVE);
}

enum { MS = 1000, PATIENCE_MS = 20 * 1000 };

static bool has_living_worker(void)
{
        return fake_worker("data") && !fake_worker("data")->dead;
}

/* Return how long ublkd has waited with the next worker since `death`, in microseconds. */
static uint64_t wait_for_next_worker(struct world *world, uint64_t death)
{
        for (unsigned ms = 0; ms < PATIENCE_MS && !has_living_worker(); ms += 5)
                world_settle(world, 5);
        CHECK(has_living_worker());
        return monotonic_now() - death;
}

/* Let the worker break the protocol, and die of that. Return how long ublkd waits with the next one. */
static uint64_t break_protocol(struct world *world)
{
        unsigned kills = fake_kills;
        uint64_t death;

        say_ready(fake_worker("data"));
        CHECK_INT(fake_kills, kills + 1);
        death = monotonic_now();
        fake_worker_die(fake_worker("data"));
        return wait_for_next_worker(world, death);
}

/* Each time longer. */
static void the_next_worker_waits(void)
{
        struct world world;

        world_new_live(&world);
        CHECK(break_protocol(&world) >= 100 * MS);
        CHECK_INT(count_events(&world, REASON_WORKER_BROKE_PROTOCOL), 1);
        CHECK_INT(count_events(&world, REASON_WORKER_DIED), 0);
        world_bring_up(&world, "data", "file:1");
        CHECK(break_protocol(&world) >= 200 * MS);
        world_bring_up(&world, "data", "file:1");
        CHECK(break_protocol(&world) >= 400 * MS);
        world_free(&world);
}

/* Let ublkd start again, and find the worker. */
static struct fake_worker *find_again(struct world *world)
{
        world_restart_with_workers(world);
        return fake_worker("data");
}

static void a_worker_that_is_found_and_claims_too_much_leaves_an_event(void)
{
        struct fake_worker *worker;
        struct world world;

        world_new_live(&world);
        worker = find_again(&world);
        CHECK_INT(backing_claims_add(&worker->params.claims,
                          &(struct backing_claim){.key = (char *)"file:2", .end = 1 << 20, .writes = true}),
                0);
        fake_worker_greet(worker, world_record(&world, "data")->epoch, 0);
        CHECK_INT(fake_kills, 1);
        fake_worker_die(worker);
        world_settle(&world, 20);
        CHECK_INT(count_events(&world, REASON_WORKER_BROKE_PROTOCOL), 1);
        world_free(&world);
}

/* Before its HELLO, too, when nothing is known of it. */
static void a_worker_that_is_found_and_talks_nonsense_leaves_an_event(void)
{
        struct fake_worker *worker;
        struct world world;

        world_new_live(&world);
        worker = find_again(&world);
        say_ready(worker);
        CHECK_INT(fake_kills, 1);
        fake_worker_die(worker);
        world_settle(&world, 20);
        CHECK_INT(count_events(&world, REASON_WORKER_BROKE_PROTOCOL), 1);
        world_free(&world);
}

/* Let ublkd start again. The worker of "data", if it lives, has closed its socket; the driver names `server`. */
static struct fake_worker *find_unreachable(
        struct world *world, bool lives, enum kernel_state state, pid_t server)
{
        struct fake_worker *worker;

        world_new_live(world);
        world_stop_reconciler(world);
        fake_disks[0].state = state;
        fake_disks[0].server_pid = server;
        fake_mark = lives;
        fake_adopt_error = -ECONNREFUSED;
        world_start_reconciler(world);
        fake_adopt_error = -ENOENT;
        worker = fake_worker("data");
        CHECK(!worker == !lives);
        if (worker) {
                worker->number = 0;
                fake_disks[0].holder = worker->index;
        }
        world_settle(world, 20);
        return worker;
}

static void check_recovered(struct world *world)
{
        fake_disks[0].server_pid = -1;
        world_settle(world, 200);
        world_bring_up(world, "data", "file:1");
        CHECK_INT(fake_kernel.adds, 1); /* it is the same disk */
        world_free(world);
}

/* No other worker can take its queues, and no client could remove the disk. */
static void a_worker_that_closed_its_socket_is_killed(void)
{
        struct fake_worker *worker;
        struct world world;

        worker = find_unreachable(&world, true, KERNEL_STATE_LIVE, FAKE_PID);
        CHECK_INT(fake_kills, 1);
        CHECK(fake_worker("data") == worker); /* ublkd waits for its death */
        fake_worker_die(worker);
        world_settle(&world, 20);
        CHECK_INT(count_events(&world, REASON_WORKER_BROKE_PROTOCOL), 1);
        check_recovered(&world);
}

static void a_process_that_does_not_serve_the_disk_is_not_killed(void)
{
        struct world world;

        (void)find_unreachable(&world, true, KERNEL_STATE_LIVE, FAKE_PID + 1);
        CHECK_INT(fake_kills, 0);
        CHECK(fake_worker("data")
                && fake_worker("data")->epoch != 0); /* the next one, which has its CONFIG, tries */
        CHECK_INT(count_events(&world, REASON_WORKER_BROKE_PROTOCOL), 0);
        world_free(&world);
}

/* It closes its socket when it exits. */
static void a_worker_that_is_exiting_is_waited_for(void)
{
        struct fake_worker *worker;
        struct world world;

        worker = find_unreachable(&world, true, KERNEL_STATE_QUIESCED, -1);
        CHECK_INT(fake_kills, 0);
        CHECK(fake_worker("data") == worker);
        fake_worker_die(worker);
        world_settle(&world, 20);
        CHECK_INT(count_events(&world, REASON_WORKER_BROKE_PROTOCOL), 0);
        check_recovered(&world);
}

/* As with each worker that an older ublkd has started. */
static void a_worker_without_a_note_is_not_looked_for(void)
{
        struct world world;

        CHECK(!find_unreachable(&world, false, KERNEL_STATE_QUIESCED, -1));
        CHECK_INT(fake_kills, 0);
        check_recovered(&world);
}

int main(void)
{
        the_next_worker_waits();
        a_worker_that_is_found_and_claims_too_much_leaves_an_event();
        a_worker_that_is_found_and_talks_nonsense_leaves_an_event();
        a_worker_that_closed_its_socket_is_killed();
        a_process_that_does_not_serve_the_disk_is_not_killed();
        a_worker_that_is_exiting_is_waited_for();
        a_worker_without_a_note_is_not_looked_for();
        return check_report();
}
