/* SPDX-License-Identifier: MIT */
/* A worker that ublkd kills for what it sent: an event names that, and its device waits before it starts another. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/reconcile/reconciler_world.h"
#include "ublkd/base/clock.h"

#include <errno.h>

/* Check that the log has one event of the breach, a warning. The status adds to its count. */
static void check_breach(const struct world *world)
{
        const struct event_log *log = device_store_events(world->store);
        unsigned found = 0;

        for (size_t i = 0; i < event_log_count(log); i++)
                if (event_log_at(log, i)->reason == REASON_WORKER_BROKE_PROTOCOL) {
                        CHECK_INT(event_log_at(log, i)->type, EVENT_WARNING);
                        found++;
                }
        CHECK_INT(found, 1);
}

static void send_ready(struct fake_worker *worker)
{
        stand_in_sends(worker->index, &(const struct worker_msg){.type = WORKER_MSG_READY}, -1);
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

        send_ready(fake_worker("data"));
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
        check_breach(&world);
        CHECK_INT(world_count_events(&world, REASON_WORKER_DIED), 0);
        world_bring_up(&world, "data", "file:1");
        CHECK(break_protocol(&world) >= 200 * MS);
        world_bring_up(&world, "data", "file:1");
        CHECK(break_protocol(&world) >= 400 * MS);
        world_free(&world);
}

enum { NOTICES = 16, LIVES = 4 }; /* so many pass at once */

static void send_notices(struct fake_worker *worker, unsigned life)
{
        for (unsigned i = 0; i < NOTICES; i++) {
                _cleanup_worker_msg_ struct worker_msg msg = {.type = WORKER_MSG_NOTICE};
                char reason[32];

                snprintf(reason, sizeof(reason), "Hostile%uX%u", life, i);
                CHECK_INT(problem_add(&msg.notice, EBUSY, "/target", reason, "Look here."), 0);
                stand_in_sends(worker->index, &msg, -1);
        }
}

/* Before, each had as many as one connection may bring. */
static void workers_that_follow_each_other_share_the_notices_of_their_device(void)
{
        const struct event_log *log;
        uint64_t notices = 0, reasons = 0, began = monotonic_now(), seconds;
        struct world world;

        world_new_live(&world);
        for (unsigned life = 0; life < LIVES; life++) {
                send_notices(fake_worker("data"), life);
                world_settle(&world, 20);
                fake_worker_die(fake_worker("data"));
                (void)wait_for_next_worker(&world, monotonic_now());
                world_bring_up(&world, "data", "file:1");
        }
        log = device_store_events(world.store);
        for (size_t i = 0; i < event_log_count(log); i++)
                if (event_log_at(log, i)->reason >= REASON_OTHER) {
                        notices += event_log_at(log, i)->count;
                        reasons++;
                }
        seconds = (monotonic_now() - began) / (1000 * MS);
        CHECK(notices >= NOTICES && notices <= NOTICES + seconds / 10 + 1);
        CHECK_INT(reasons, REASONS_OF_A_DISK + 1);
        CHECK_INT(world_count_events(&world, REASON_WORKER_BROKE_PROTOCOL), 0);
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
        check_breach(&world);
        world_free(&world);
}

/* Before its HELLO, too, when nothing is known of it. */
static void a_worker_that_is_found_and_talks_nonsense_leaves_an_event(void)
{
        struct fake_worker *worker;
        struct world world;

        world_new_live(&world);
        worker = find_again(&world);
        send_ready(worker);
        CHECK_INT(fake_kills, 1);
        fake_worker_die(worker);
        world_settle(&world, 20);
        check_breach(&world);
        world_free(&world);
}

/* What the worker does that a ublkd cannot reach. */
enum unreachable { IS_GONE, IS_EXITING, STAYS };

/* Let ublkd start again. The worker of "data", if it lives, has closed its socket; the driver names `server`. */
static struct fake_worker *find_unreachable(
        struct world *world, enum unreachable what, enum kernel_state state, pid_t server)
{
        struct fake_worker *worker;

        world_new_live(world);
        world_stop_reconciler(world);
        fake_disks[0].state = state;
        fake_disks[0].server_pid = server;
        fake_mark = what != IS_GONE;
        fake_stays = what == STAYS;
        fake_adopt_error = -ECONNREFUSED;
        world_start_reconciler(world);
        fake_adopt_error = -ENOENT;
        worker = fake_worker("data");
        CHECK(!worker == (what == IS_GONE));
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

        worker = find_unreachable(&world, STAYS, KERNEL_STATE_LIVE, FAKE_PID);
        CHECK_INT(fake_kills, 1);
        CHECK(fake_worker("data") == worker); /* ublkd waits for its death */
        fake_worker_die(worker);
        world_settle(&world, 20);
        check_breach(&world);
        check_recovered(&world);
}

static void a_process_that_does_not_serve_the_disk_is_not_killed(void)
{
        struct world world;

        (void)find_unreachable(&world, STAYS, KERNEL_STATE_LIVE, FAKE_PID + 1);
        CHECK_INT(fake_kills, 0);
        CHECK(fake_worker("data")
                && fake_worker("data")->epoch != 0); /* the next one, which has its CONFIG, tries */
        CHECK_INT(world_count_events(&world, REASON_WORKER_BROKE_PROTOCOL), 0);
        world_free(&world);
}

/* For longer than a worker has that stays, which is 5 s. */
static void outlast_grace(struct world *world)
{
        for (uint64_t since = monotonic_now(); monotonic_now() - since < 5500 * MS;)
                world_settle(world, 5);
}

/* It closes its socket when it exits, and may wait for its store for longer than a worker has that stays. The driver
 * names it until its last queue has ended. */
static void a_worker_that_is_exiting_is_waited_for(void)
{
        static const struct {
                enum kernel_state state;
                pid_t server;
        } rows[] = {
                {KERNEL_STATE_QUIESCED, -1      },
                {KERNEL_STATE_LIVE,     FAKE_PID},
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct fake_worker *worker;
                struct world world;

                worker = find_unreachable(&world, IS_EXITING, rows[i].state, rows[i].server);
                outlast_grace(&world);
                CHECK_INT(fake_kills, 0);
                CHECK(fake_worker("data") == worker);
                fake_worker_die(worker);
                world_settle(&world, 20);
                CHECK_INT(world_count_events(&world, REASON_WORKER_BROKE_PROTOCOL), 0);
                check_recovered(&world);
        }
}

/* The driver names no process, and the worker runs on. */
static void a_worker_that_closed_its_socket_and_stays_has_some_time(void)
{
        struct fake_worker *worker;
        struct world world;

        worker = find_unreachable(&world, STAYS, KERNEL_STATE_QUIESCED, -1);
        CHECK_INT(fake_kills, 0);
        for (unsigned ms = 0; ms < PATIENCE_MS && fake_kills == 0; ms += 5)
                world_settle(&world, 5);
        CHECK_INT(fake_kills, 1);
        fake_worker_die(worker);
        world_settle(&world, 20);
        check_breach(&world);
        check_recovered(&world);
}

/* Before it serves, too. */
static void a_worker_that_exits_slowly_before_it_serves_has_broken_nothing(void)
{
        struct fake_worker *worker;
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_settle(&world, 0);
        worker = fake_worker("data");
        if (!CHECK(worker))
                return;
        fake_worker_open(worker, "file:1");
        world_settle(&world, 20);
        fake_worker_leave(worker);
        outlast_grace(&world);
        CHECK_INT(fake_kills, 0);
        CHECK(fake_worker("data") == worker);
        fake_worker_die(worker);
        world_settle(&world, 20);
        CHECK_INT(world_count_events(&world, REASON_WORKER_KILLED), 0);
        world_bring_up(&world, "data", "file:1");
        world_free(&world);
}

/* As with each worker that an older ublkd has started. */
static void a_worker_without_a_note_is_not_looked_for(void)
{
        struct world world;

        CHECK(!find_unreachable(&world, IS_GONE, KERNEL_STATE_QUIESCED, -1));
        CHECK_INT(fake_kills, 0);
        check_recovered(&world);
}

/* It would serve on without growing, and without its faults being reported. */
static void a_worker_that_closes_its_channel_and_stays_is_killed(void)
{
        struct fake_worker *worker;
        struct world world;
        uint64_t closed, death;

        world_new_live(&world);
        worker = fake_worker("data");
        fake_stays = true;
        closed = monotonic_now();
        fake_worker_leave(worker);
        for (unsigned ms = 0; ms < PATIENCE_MS && fake_kills == 0; ms += 5)
                world_settle(&world, 5);
        fake_stays = false;
        CHECK_INT(fake_kills, 1);
        CHECK(monotonic_now() - closed >= 1000 * MS); /* one that exits has time */
        CHECK_INT(world_count_events(&world, REASON_WORKER_BROKE_PROTOCOL), 0);
        death = monotonic_now();
        fake_worker_die(worker);
        CHECK(wait_for_next_worker(&world, death) >= 100 * MS);
        check_breach(&world);
        check_recovered(&world);
}

/* By their specs a death would fail requests, cost the disk, or the disk would wait for a recover. */
static void one_whose_death_costs_something_stays_without_its_channel(void)
{
        static const char *const specs[] = {
                "\"onCrash\":\"none\"", "\"onCrash\":\"queue\"", "\"trigger\":\"manual\""};

        for (size_t i = 0; i < ARRAY_SIZE(specs); i++) {
                struct world world;
                char more[64];

                world_new(&world);
                snprintf(more, sizeof(more), ",\"recovery\":{%s}", specs[i]);
                world_put_loop(&world, "data", more);
                world_bring_up(&world, "data", "file:1");
                fake_stays = true;
                fake_worker_leave(fake_worker("data"));
                for (unsigned ms = 0;
                        ms < PATIENCE_MS && world_count_events(&world, REASON_WORKER_BROKE_PROTOCOL) == 0;
                        ms += 5)
                        world_settle(&world, 5);
                world_settle(&world, 3000);
                fake_stays = false;
                CHECK_INT(fake_kills, 0);
                CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
                check_breach(&world);
                CHECK_INT(world_count_events(&world, REASON_WORKER_BROKE_PROTOCOL), 1);
                world_free(&world);
        }
}

/* Longer than a worker has that stays. */
static void a_worker_that_exits_slowly_has_broken_nothing(void)
{
        struct fake_worker *worker;
        struct world world;

        world_new_live(&world);
        worker = fake_worker("data");
        fake_worker_leave(worker);
        world_settle(&world, 5000);
        CHECK_INT(fake_kills, 0);
        fake_worker_die(worker);
        world_settle(&world, 20);
        CHECK_INT(world_count_events(&world, REASON_WORKER_BROKE_PROTOCOL), 0);
        CHECK(world_count_events(&world, REASON_WORKER_DIED) > 0);
        check_recovered(&world);
}

int main(void)
{
        a_worker_that_closes_its_channel_and_stays_is_killed();
        one_whose_death_costs_something_stays_without_its_channel();
        a_worker_that_exits_slowly_has_broken_nothing();
        the_next_worker_waits();
        workers_that_follow_each_other_share_the_notices_of_their_device();
        a_worker_that_is_found_and_claims_too_much_leaves_an_event();
        a_worker_that_is_found_and_talks_nonsense_leaves_an_event();
        a_worker_that_closed_its_socket_is_killed();
        a_process_that_does_not_serve_the_disk_is_not_killed();
        a_worker_that_is_exiting_is_waited_for();
        a_worker_that_closed_its_socket_and_stays_has_some_time();
        a_worker_that_exits_slowly_before_it_serves_has_broken_nothing();
        a_worker_without_a_note_is_not_looked_for();
        return check_report();
}
