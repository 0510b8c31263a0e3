/* SPDX-License-Identifier: MIT */
/* ublkd reports the result of a try only for the request of the user that it was made for: the reconciler
 * over a fake kernel and fake workers. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/reconcile/reconciler_world.h"

/* Check that the last event of that reason contains `words`. */
static void check_event(
        const struct world *world, enum condition_reason reason, enum event_type type, const char *words)
{
        const struct event_log *log = device_store_events(world->store);
        size_t i = event_log_count(log);

        while (i > 0 && event_log_at(log, i - 1)->reason != reason)
                i--;
        if (!CHECK(i > 0))
                return;
        CHECK_INT(event_log_at(log, i - 1)->type, type);
        if (!CHECK(strstr(event_log_at(log, i - 1)->message, words)))
                fprintf(stderr, "it says: %s\n", event_log_at(log, i - 1)->message);
}

/* After a new spec: the worker of the old spec refuses, and the worker of the new spec opens its store. */
static void check_not_judged(struct world *world)
{
        const struct device_record *record;

        fake_worker_refuse(fake_worker("data"), "BackingTooSmall", "It is too small.");
        world_settle(world, 5);
        record = world_record(world, "data");
        CHECK_INT(record->status.phase, PHASE_STARTING);
        CHECK_INT(record->status.observed_generation, record->generation);
        CHECK(!strstr(record->status.message, "too small"));
        CHECK_INT(world_count_events(world, REASON_BACKING_TOO_SMALL), 0);
        CHECK(fake_worker("data"));
}

/* Every refusal makes the back-off longer, so the test sees it in the end even on a busy machine. */
static void refuse_until_back_off(struct world *world)
{
        for (unsigned deaths = 0; fake_worker("data") && deaths < 20; deaths++) {
                fake_worker_refuse(fake_worker("data"), "BackingTooSmall", "It is too small.");
                world_settle(world, 0);
        }
        CHECK(!fake_worker("data"));
        CHECK_INT(world_phase(world, "data"), PHASE_BACKOFF);
}

static void a_refusal_does_not_apply_to_a_later_spec(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_settle(&world, 5);
        CHECK(fake_worker("data"));
        world_put_loop(&world, "data", ",\"labels\":{\"a\":\"b\"}");
        check_not_judged(&world);
        refuse_until_back_off(&world);
        CHECK(strstr(world_record(&world, "data")->status.message, "It is too small.")); /* one refusal */
        CHECK_INT(world_record(&world, "data")->status.reason, REASON_BACKING_TOO_SMALL);
        CHECK_INT(world_record(&world, "data")->status.observed_generation, 2);
        world_free(&world);
}

/* Both come within one turn of the loop. */
static void a_refusal_that_comes_with_the_next_spec_does_not_apply_to_it(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_settle(&world, 5);
        world_put_loop(&world, "data", ",\"labels\":{\"a\":\"b\"}");
        world_settle(&world, 0);
        check_not_judged(&world);
        world_free(&world);
}

static void a_refusal_does_not_answer_a_later_request(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_settle(&world, 5);
        CHECK_INT(device_store_try_again(world.store, "data"), 0);
        check_not_judged(&world);
        CHECK_INT(world_record(&world, "data")->status.observed_asked, 1);
        world_bring_up(&world, "data", "file:1");
        CHECK_INT(device_store_try_again(world.store, "data"), 0); /* of a disk without a failure */
        world_settle(&world, 5);
        CHECK_INT(world_record(&world, "data")->status.observed_asked, 2);
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        CHECK_INT(device_store_try_again(world.store, "absent"), -ENOENT);
        world_free(&world);
}

static void asking_again_skips_the_back_off(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_settle(&world, 5);
        refuse_until_back_off(&world);
        CHECK_INT(device_store_try_again(world.store, "data"), 0);
        world_settle(&world, 5);
        CHECK(fake_worker("data"));
        CHECK_INT(world_phase(&world, "data"), PHASE_STARTING); /* not yet judged */
        world_free(&world);
}

/* A worker may still open a store that the spec does not want any more, or with an old size. */
static void a_worker_of_another_store_or_size_is_not_waited_for(void)
{
        static const char *const changes[] = {",\"size\":\"1MiB\"", ",\"readOnly\":true"};
        struct fake_worker *first;
        struct world world;

        for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
                world_new(&world);
                world_put_loop(&world, "data", changes[i]);
                world_settle(&world, 5);
                first = fake_worker("data");
                world_put_loop(&world, "data", "");
                world_settle(&world, 5);
                CHECK_INT(fake_kills, 1);
                CHECK_INT(world_phase(&world, "data"), PHASE_STARTING);
                fake_worker_refuse(first, "BackingTooSmall", "It is too small.");
                world_settle(&world, 5);
                CHECK_INT(world_count_events(&world, REASON_BACKING_TOO_SMALL), 0);
                world_bring_up(&world, "data", "file:1");
                CHECK_INT(fake_kills, 1);
                world_free(&world);
        }
}

/* An earlier ublkd has started the worker, for an unknown spec. */
static void a_refusal_of_an_adopted_worker_is_not_final(void)
{
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_bring_up(&world, "data", "file:1");
        fake_disks[0].state = KERNEL_STATE_QUIESCED;
        world_restart_with_workers(&world);
        fake_worker_refuse(fake_worker("data"), "BackingInUse", "Another program has it.");
        world_settle(&world, 5);
        CHECK_INT(world_phase(&world, "data"), PHASE_RECOVERING);
        CHECK(!strstr(world_record(&world, "data")->status.message, "Another program"));
        world_bring_up(&world, "data", "file:1");
        world_free(&world);
}

static void a_preflight_does_not_apply_to_a_later_spec(void)
{
        struct world world;

        world_new(&world);
        world.host.features = WORLD_QUIESCES;
        world_put_loop(&world, "data", "");
        world_bring_up(&world, "data", "file:1");
        CHECK_INT(device_store_request_restart(world.store, "data", false), 0);
        world_settle(&world, 20);
        world_put_loop(&world, "data", ",\"labels\":{\"a\":\"b\"}");
        fake_worker_refuse(fake_worker("(preflight)"), "BackingFileMissing", "It is missing.");
        world_settle(&world, 200);
        CHECK_INT(world_count_events(&world, REASON_CANNOT_RESTART), 0);
        if (CHECK(fake_worker("(preflight)"))) /* another preflight */
                fake_worker_refuse(fake_worker("(preflight)"), "BackingFileMissing", "It is missing.");
        world_settle(&world, 20);
        CHECK(world_count_events(&world, REASON_CANNOT_RESTART) > 0);
        CHECK_INT(world_record(&world, "data")->status.reason, REASON_CANNOT_RESTART);
        world_free(&world);
}

/* The user tries a size, learns that the file is too small, takes it back, grows the file, and tries
 * again. */
static void a_growth_is_judged_by_its_own_try(void)
{
        struct world world;

        world_new(&world);
        world.host.features = WORLD_GROWS;
        world_put_size(&world, "data", 1024, 0);
        world_bring_up(&world, "data", "file:1");
        world_put_size(&world, "data", 2048, 0);
        world_wait_growth_asked(&world, "data");
        fake_worker_grow(fake_worker("data"), "It is too small.");
        world_settle(&world, 5);
        CHECK_INT(world_record(&world, "data")->status.reason, REASON_CANNOT_GROW);
        world_put_size(&world, "data", 1024, 0);
        world_settle(&world, 5);
        CHECK_INT(world_record(&world, "data")->status.reason, REASON_LIVE);
        world_put_size(&world, "data", 2048, 0);
        world_settle(&world, 5);
        CHECK_INT(world_record(&world, "data")->status.reason, REASON_GROWING);
        CHECK_INT(world_count_events(&world, REASON_CANNOT_GROW), 1);
        world_wait_growth_asked(&world, "data");
        fake_worker_grow(fake_worker("data"), NULL);
        world_settle(&world, 5);
        CHECK_INT(world_record(&world, "data")->status.reason, REASON_LIVE);
        CHECK_INT(world_record(&world, "data")->status.size, 2 << 20);
        CHECK_INT(world_count_events(&world, REASON_CANNOT_GROW), 1);
        world_free(&world);
}

/* Store the same spec again. */
static void a_growth_that_is_asked_for_again_is_judged_by_that_try(void)
{
        struct world world;

        world_new(&world);
        world.host.features = WORLD_GROWS;
        world_put_size(&world, "data", 1024, 0);
        world_bring_up(&world, "data", "file:1");
        world_put_size(&world, "data", 2048, 0);
        world_wait_growth_asked(&world, "data");
        fake_worker_grow(fake_worker("data"), "It is too small.");
        world_settle(&world, 5);
        CHECK_INT(world_record(&world, "data")->status.reason, REASON_CANNOT_GROW);
        CHECK_INT(device_store_try_again(world.store, "data"), 0);
        world_settle(&world, 5);
        CHECK_INT(world_record(&world, "data")->status.observed_asked, 1);
        CHECK_INT(world_record(&world, "data")->status.reason, REASON_GROWING);
        world_wait_growth_asked(&world, "data");
        fake_worker_grow(fake_worker("data"), "It is still too small.");
        world_settle(&world, 5);
        CHECK(strstr(world_record(&world, "data")->status.message, "still too small"));
        world_free(&world);
}

static void restart(struct world *world, uint64_t features, bool crashes)
{
        world_new(world);
        fake_kernel.crashes = crashes;
        world->host.features = features;
        world_put_loop(world, "data", "");
        world_bring_up(world, "data", "file:1");
        CHECK_INT(device_store_request_restart(world->store, "data", false), 0);
        world_settle(world, 20);
        if (CHECK(fake_worker("(preflight)")))
                fake_worker_open(fake_worker("(preflight)"), "file:1");
        world_settle(world, 5);
        if (CHECK(fake_worker("(preflight)")))
                fake_worker_die(fake_worker("(preflight)"));
        world_settle(world, 20);
}

static void the_event_shows_how_a_worker_exited_that_ublkd_asked_to(void)
{
        struct world world;

        restart(&world, WORLD_RECOVERS, false);
        check_event(&world, REASON_WORKER_RETIRED, EVENT_NORMAL,
                "was killed to be replaced, because its program is too old to leave by itself, and ublkd "
                "cannot "
                "quiesce this disk (before Linux 7.3, or served in batches)");
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 5);
        CHECK_INT(world_count_events(&world, REASON_WORKER_RETIRED), 1);
        CHECK_INT(world_count_events(&world, REASON_WORKER_DIED), 0);
        world_free(&world);

        restart(&world, WORLD_QUIESCES, false);
        check_event(&world, REASON_WORKER_RETIRED, EVENT_NORMAL, "and has exited;");
        world_free(&world);

        restart(&world, WORLD_QUIESCES, true);
        check_event(
                &world, REASON_WORKER_DIED, EVENT_WARNING, "was asked to exit, and was killed by SIGSEGV");
        CHECK_INT(world_count_events(&world, REASON_WORKER_RETIRED), 0);
        world_free(&world);
}

int main(void)
{
        fake_adopt_error = -ENOENT;
        a_refusal_does_not_apply_to_a_later_spec();
        a_refusal_that_comes_with_the_next_spec_does_not_apply_to_it();
        a_refusal_does_not_answer_a_later_request();
        asking_again_skips_the_back_off();
        a_worker_of_another_store_or_size_is_not_waited_for();
        a_refusal_of_an_adopted_worker_is_not_final();
        a_preflight_does_not_apply_to_a_later_spec();
        a_growth_is_judged_by_its_own_try();
        a_growth_that_is_asked_for_again_is_judged_by_that_try();
        the_event_shows_how_a_worker_exited_that_ublkd_asked_to();
        return check_report();
}
