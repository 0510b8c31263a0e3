/* The reconciler over a store in memory, a pretended kernel and pretended workers. */
#include "check.h"
#include "reconciler_fakes.h"
#include "ublkd/observe.h"
#include "ublkd/reconciler.h"

#include <stdlib.h>
#include <unistd.h>

enum { DISKS = 8 };

struct world {
        sd_event *event;
        const struct device_backend *real;
        void *real_context;
        int erase_error;
        struct device_store *store;
        struct runtime_dir *dir;
        struct host host;
        struct reconciler *reconciler;
        char path[64];
};

/* ---- a store that cannot always erase ---- */

static int load(void *context, int (*each)(void *, const struct device_record *, const char *),
        void *userdata, uint64_t *ret_revision)
{
        struct world *world = context;

        return world->real->load(world->real_context, each, userdata, ret_revision);
}

static int save(void *context, const struct device_record *record, const char *document, uint64_t revision,
        const struct device_event *event)
{
        struct world *world = context;

        return world->real->save(world->real_context, record, document, revision, event);
}

static int erase(void *context, const char *name, uint64_t revision, const struct device_event *event)
{
        struct world *world = context;

        return world->erase_error ? world->erase_error
                                  : world->real->erase(world->real_context, name, revision, event);
}

static int load_events(void *context, int (*each)(void *userdata, const struct device_event *event),
        void *userdata, uint64_t *ret_compacted)
{
        struct world *world = context;

        return world->real->load_events(world->real_context, each, userdata, ret_compacted);
}

static int save_events(
        void *context, const struct device_event *const *events, size_t count, uint64_t compacted)
{
        struct world *world = context;

        return world->real->save_events(world->real_context, events, count, compacted);
}

static void close_store(void *context)
{
        struct world *world = context;

        world->real->close(world->real_context);
}

static const struct device_backend backend = {
        .name = "test",
        .load = load,
        .save = save,
        .erase = erase,
        .load_events = load_events,
        .save_events = save_events,
        .close = close_store,
};

/* ---- the world ---- */

static void on_settled(void *userdata _unused_)
{
}

static void start_reconciler(struct world *world)
{
        const struct reconciler_config config = {.event = world->event,
                .store = world->store,
                .runtime_dir = world->dir,
                .host = &world->host,
                .worker_program = "worker",
                .settled = on_settled};

        CHECK_INT(reconciler_new(&config, &world->reconciler), 0);
        reconciler_set_control(world->reconciler, (struct ublk_ctl *)world); /* the fakes do not look at it */
}

static void world_new(struct world *world)
{
        _cleanup_problems_ struct problem_list problems = {};

        *world = (struct world){
                .host = {.features = 1, .cpus = 1}
        };
        memset(fake_disks, 0, sizeof(fake_disks));
        fake_kills = fake_quiesces = fake_adds = 0;
        fake_add_error = 0;
        fake_dropped_flags = 0;
        fake_get_info_error = 0;
        strcpy(world->path, "/tmp/ublkd-reconciler-XXXXXX");
        CHECK(mkdtemp(world->path));
        CHECK_INT(sd_event_new(&world->event), 0);
        CHECK_INT(store_memory_open(&world->real, &world->real_context), 0);
        CHECK_INT(device_store_new(&backend, world, &world->store), 0);
        CHECK_INT(runtime_dir_open(world->path, &world->dir, &problems), 0);
        start_reconciler(world);
}

static void world_free(struct world *world)
{
        char command[128];

        reconciler_free(world->reconciler);
        device_store_free(world->store);
        runtime_dir_free(world->dir);
        sd_event_unref(world->event);
        snprintf(command, sizeof(command), "rm -r %s", world->path);
        CHECK_INT(system(command), 0);
}

static void put(struct world *world, const char *text)
{
        _cleanup_problems_ struct problem_list problems = {};
        const struct put_condition condition = {.mode = PUT_CREATE_OR_REPLACE};
        cJSON *document = cJSON_Parse(text);
        const struct device_record *record;
        enum put_outcome outcome;
        struct device_spec *spec;

        if (CHECK_INT(device_spec_parse(document, NULL, &spec, &problems), 0))
                CHECK_INT(device_store_put(world->store, spec, &condition, &record, &outcome, &problems), 0);
        cJSON_Delete(document);
}

static void put_loop(struct world *world, const char *name, const char *more)
{
        char text[256];

        snprintf(text, sizeof(text), "{\"name\":\"%s\",\"target\":{\"type\":\"loop\",\"path\":\"/f\"}%s}",
                name, more);
        put(world, text);
}

/* Lets the loop and the kernel do all that they can do by themselves within `milliseconds`. */
static void settle(struct world *world, unsigned milliseconds)
{
        for (unsigned quiet = 0; quiet <= milliseconds;) {
                if (sd_event_run(world->event, 0) > 0 || fake_ctl_answer())
                        continue;
                quiet++;
                (void)usleep(1000);
        }
}

static const struct device_record *record_of(const struct world *world, const char *name)
{
        return device_store_get(world->store, name);
}

static enum device_phase phase_of(const struct world *world, const char *name)
{
        return record_of(world, name)->status.phase;
}

/* From a worker that has just been started to a live disk. */
static void bring_up(struct world *world, const char *name, const char *key)
{
        struct worker_proc *worker;

        settle(world, 0);
        worker = fake_worker(name);
        if (!CHECK(worker))
                return;
        fake_worker_open(worker, key);
        settle(world, 5);
        worker = fake_worker(name);
        if (!CHECK(worker && worker_proc_number(worker) >= 0))
                return;
        fake_worker_ready(worker);
        settle(world, 5);
        CHECK_INT(phase_of(world, name), PHASE_LIVE);
}

/* Whoever was killed is dead, and whoever was started opens the store, for some rounds. */
static void churn(struct world *world, const char *const *names, size_t count, const char *key)
{
        for (unsigned round = 0; round < 10; round++) {
                for (size_t i = 0; i < count; i++) {
                        struct worker_proc *worker = fake_worker(names[i]);
                        enum worker_stage stage = worker ? worker_proc_stage(worker) : WORKER_STAGE_SERVING;

                        if (stage == WORKER_STAGE_LEAVING)
                                fake_worker_die(worker);
                        else if (stage == WORKER_STAGE_OPENING)
                                fake_worker_open(worker, key);
                        else if (stage == WORKER_STAGE_FETCHING)
                                fake_worker_ready(worker);
                }
                settle(world, 20);
        }
}

/* ---- the tests ---- */

static void many_devices_that_choose_a_number_at_once(void)
{
        struct world world;
        char name[16], key[16];

        world_new(&world);
        for (int i = 0; i < DISKS; i++) {
                snprintf(name, sizeof(name), "disk-%d", i);
                put_loop(&world, name, "");
        }
        settle(&world, 0);
        for (int i = 0; i < DISKS; i++) {
                snprintf(name, sizeof(name), "disk-%d", i);
                snprintf(key, sizeof(key), "file:%d", i);
                fake_worker_open(fake_worker(name), key);
        }
        settle(&world, 5);
        for (int i = 0; i < DISKS; i++)
                CHECK(fake_disks[i].there);
        CHECK_INT(fake_kills, 0);
        world_free(&world);
}

enum {
        GROW_FLAGS = 1 | 1 << 10 /* UPDATE_SIZE */,
        QUIESCE_FLAGS = 1 | 1 << 12,
        TRY_STOP_FLAGS = 1 | 1 << 17
};

static void put_size(struct world *world, const char *name, uint64_t kib, uint64_t offset)
{
        char text[256];

        snprintf(text, sizeof(text),
                "{\"name\":\"%s\",\"target\":{\"type\":\"loop\",\"path\":\"/"
                "f\",\"offset\":%llu},\"size\":\"%lluKiB\"}",
                name, (unsigned long long)offset, (unsigned long long)kib);
        put(world, text);
}

/* First the worker, then the disk; and what the worker cannot do is told, and asked again. */
static void a_disk_grows_after_its_worker(void)
{
        struct world world;

        world_new(&world);
        world.host.features = GROW_FLAGS;
        put_size(&world, "data", 1024, 0);
        bring_up(&world, "data", "file:1");
        put_size(&world, "data", 2048, 0);
        settle(&world, 5);
        CHECK_INT(record_of(&world, "data")->epoch, 1);
        CHECK_INT(fake_worker_asked(fake_worker("data")), 2 << 20);
        CHECK_INT(fake_disks[0].size, 0);
        CHECK_STR(record_of(&world, "data")->status.reason, "Growing");
        CHECK(!record_of(&world, "data")->status.settled);
        fake_worker_grow(fake_worker("data"), "It is too small.");
        settle(&world, 5);
        CHECK_INT(fake_disks[0].size, 0);
        CHECK_STR(record_of(&world, "data")->status.reason, "CannotGrow");
        CHECK_INT(phase_of(&world, "data"), PHASE_LIVE);
        fake_worker_grow(fake_worker("data"), NULL);
        settle(&world, 5);
        CHECK_INT(fake_disks[0].size, 2 << 20);
        CHECK_STR(record_of(&world, "data")->status.reason, "Live");
        CHECK_INT(record_of(&world, "data")->status.size, 2 << 20);
        CHECK(record_of(&world, "data")->status.settled);
        CHECK_INT(fake_kills, 0);
        world_free(&world);
}

static void a_disk_does_not_grow_into_another(void)
{
        struct world world;

        world_new(&world);
        world.host.features = GROW_FLAGS;
        put_size(&world, "low", 1024, 0);
        bring_up(&world, "low", "file:1");
        put_size(&world, "high", 1024, 1536 << 10);
        settle(&world, 0);
        fake_worker_place(fake_worker("high"), 1536 << 10);
        bring_up(&world, "high", "file:1");
        put_size(&world, "low", 2048, 0);
        settle(&world, 5);
        CHECK_INT(fake_worker_asked(fake_worker("low")), 0);
        CHECK_STR(record_of(&world, "low")->status.reason, "CannotGrow");
        CHECK(strstr(record_of(&world, "low")->status.message, "\"high\""));
        CHECK_INT(phase_of(&world, "low"), PHASE_LIVE);
        world_free(&world);
}

static void a_restart_replaces_the_worker_once(void)
{
        static const char *const names[] = {"data"};
        struct world world;

        for (unsigned quiesce = 0; quiesce < 2; quiesce++) {
                world_new(&world);
                world.host.features = quiesce ? QUIESCE_FLAGS : 1;
                put_loop(&world, "data", ",\"recovery\":{\"trigger\":\"manual\"}");
                bring_up(&world, "data", "file:1");
                CHECK_INT(device_store_request_restart(world.store, "data"), 0);
                settle(&world, 20);
                churn(&world, names, 1, "file:1");
                CHECK_INT(phase_of(&world, "data"), PHASE_LIVE);
                CHECK(record_of(&world, "data")->status.settled
                        && !record_of(&world, "data")->recover_requested);
                CHECK_INT(record_of(&world, "data")->status.worker.restarts, 1);
                CHECK_INT(fake_kills, !quiesce);
                CHECK_INT(fake_quiesces, quiesce);
                world_free(&world);
        }
}

/* An ADD_DEV that was given up makes its disk after the user has chosen another number. */
static void a_late_disk_is_not_forgotten_for_another_number(void)
{
        static const char *const names[] = {"data"};
        struct world world;

        world_new(&world);
        fake_add_error = -ETIMEDOUT;
        put_loop(&world, "data", ",\"id\":3");
        settle(&world, 0);
        fake_worker_open(fake_worker("data"), "file:1");
        settle(&world, 5);
        CHECK_INT(record_of(&world, "data")->number, 3);
        put_loop(&world, "data", ",\"id\":4");
        fake_add_error = 0;
        churn(&world, names, 1, "file:1");
        CHECK_INT(record_of(&world, "data")->number, 3);
        CHECK(!fake_disks[4].there);
        fake_disks[3] = (struct fake_disk){
                .there = true,
                .device = {
                           .number = 3, .cookie = device_cookie(record_of(&world, "data")->uid, 1), .flags = 1}
        };
        churn(&world, names, 1, "file:1");
        CHECK(!fake_disks[3].there);
        world_free(&world);
}

static void what_the_kernel_leaves_out_is_not_asked_for_again(void)
{
        static const char *const names[] = {"data"};
        struct world world;

        world_new(&world);
        fake_dropped_flags = 1;
        put_loop(&world, "data", "");
        settle(&world, 0);
        churn(&world, names, 1, "file:1");
        CHECK_INT(fake_adds, 1);
        CHECK_INT(phase_of(&world, "data"), PHASE_FAILED);
        CHECK(!fake_disks[0].there && !fake_worker("data"));
        fake_dropped_flags = 0;
        put_loop(&world, "data", ",\"queueDepth\":3"); /* the user has another idea */
        settle(&world, 0);
        churn(&world, names, 1, "file:1");
        CHECK_INT(phase_of(&world, "data"), PHASE_LIVE);
        world_free(&world);
}

/* Somebody came between the question whether the disk is in use and its end. */
static void a_disk_that_was_opened_since_stays_until_it_is_closed(void)
{
        struct world world;

        for (unsigned force = 0; force < 2; force++) {
                world_new(&world);
                world.host.features = TRY_STOP_FLAGS;
                put_loop(&world, "data", "");
                bring_up(&world, "data", "file:1");
                fake_disks[0].device.flags |= TRY_STOP_FLAGS; /* which the driver adds unasked */
                fake_disks[0].open = true;
                CHECK_INT(device_store_request_delete(world.store, "data", false), 0);
                settle(&world, 50);
                CHECK_INT(fake_disks[0].device.state, KERNEL_STATE_LIVE);
                CHECK_INT(fake_kills, 0);
                CHECK(strstr(record_of(&world, "data")->status.message, "opened"));
                if (force)
                        CHECK_INT(device_store_request_delete(world.store, "data", true), 0);
                else
                        fake_disks[0].open = false;
                settle(&world, 200);
                CHECK(!record_of(&world, "data") && !fake_disks[0].there);
                world_free(&world);
        }
}

static void a_stranger_that_is_faster_gets_another_number(void)
{
        struct world world;

        world_new(&world);
        put_loop(&world, "data", "");
        fake_hurried = true;
        bring_up(&world, "data", "file:1");
        CHECK_INT(record_of(&world, "data")->number, 1);
        CHECK_INT(fake_disks[0].device.cookie, FAKE_STRANGER);
        world_free(&world);
}

static void of_two_that_open_one_store_at_once_one_wins(void)
{
        static const char *const names[] = {"one", "two"};
        struct world world;

        world_new(&world);
        put_loop(&world, "one", "");
        put_loop(&world, "two", "");
        settle(&world, 0);
        fake_worker_open(fake_worker("one"), "file:1");
        fake_worker_open(fake_worker("two"), "file:1");
        settle(&world, 5);
        churn(&world, names, 2, "file:1");
        CHECK_INT((phase_of(&world, "one") == PHASE_LIVE) + (phase_of(&world, "two") == PHASE_LIVE), 1);
        CHECK_STR(record_of(&world, phase_of(&world, "one") == PHASE_LIVE ? "two" : "one")->status.reason,
                "BackingInUse");
        world_free(&world);
}

/* What waits in a disk without a worker will be written: nobody else may have its store meanwhile. */
static void a_disk_without_a_worker_keeps_its_store(void)
{
        static const char *const names[] = {"thief"};
        struct world world;

        world_new(&world);
        put_loop(&world, "data", ",\"recovery\":{\"trigger\":\"manual\"}");
        bring_up(&world, "data", "file:1");
        fake_worker_die(fake_worker("data"));
        settle(&world, 5);
        CHECK_INT(phase_of(&world, "data"), PHASE_QUIESCED);
        put_loop(&world, "thief", "");
        churn(&world, names, 1, "file:1");
        CHECK_STR(record_of(&world, "thief")->status.reason, "BackingInUse");
        CHECK_INT(device_store_request_recover(world.store, "data"), 0);
        bring_up(&world, "data", "file:1");
        world_free(&world);
}

/* The same over a restart of ublkd: nobody is there who could tell what the disk writes to. */
static void a_disk_without_a_worker_keeps_its_store_over_a_restart(void)
{
        static const char *const names[] = {"athief"};
        struct world world;

        world_new(&world);
        put_loop(&world, "data", ",\"recovery\":{\"trigger\":\"manual\"}");
        bring_up(&world, "data", "file:1");
        fake_worker_die(fake_worker("data"));
        settle(&world, 5);
        world.reconciler = reconciler_free(world.reconciler);
        start_reconciler(&world);
        put_loop(&world, "athief", "");
        churn(&world, names, 1, "file:1");
        CHECK_INT(phase_of(&world, "data"), PHASE_QUIESCED);
        CHECK_STR(record_of(&world, "athief")->status.reason, "BackingInUse");
        CHECK_INT(device_store_request_delete(world.store, "data", true), 0);
        settle(&world, 50);
        CHECK(!record_of(&world, "data"));
        put_loop(&world, "heir", "");
        bring_up(&world, "heir", "file:1");
        world_free(&world);
}

/* A supervisor that has just started, and found no claim, does not know what a disk without a worker writes
 * to. */
static void a_recovery_does_not_join_another_writer(void)
{
        static const char *const names[] = {"data"};
        struct world world;
        char command[128];

        world_new(&world);
        put_loop(&world, "data", ",\"recovery\":{\"trigger\":\"manual\"}");
        bring_up(&world, "data", "file:1");
        fake_worker_die(fake_worker("data"));
        settle(&world, 5);
        reconciler_free(world.reconciler);
        snprintf(command, sizeof(command), "rm %s/workers/*.claim",
                world.path); /* an older ublkd wrote none */
        CHECK_INT(system(command), 0);
        start_reconciler(&world);
        settle(&world, 5);
        CHECK_INT(phase_of(&world, "data"), PHASE_QUIESCED);
        put_loop(&world, "thief", "");
        bring_up(&world, "thief", "file:1");
        CHECK_INT(device_store_request_recover(world.store, "data"), 0);
        settle(&world, 5);
        churn(&world, names, 1, "file:1");
        CHECK_STR(record_of(&world, "data")->status.reason, "BackingInUse");
        CHECK_INT(fake_disks[0].device.state, KERNEL_STATE_QUIESCED);
        world_free(&world);
}

static void a_record_that_could_not_be_erased_goes_later(void)
{
        struct world world;

        world_new(&world);
        put_loop(&world, "data", "");
        bring_up(&world, "data", "file:1");
        world.erase_error = -ENOSPC;
        CHECK_INT(device_store_request_delete(world.store, "data", false), 0);
        settle(&world, 5);
        CHECK(record_of(&world, "data"));
        world.erase_error = 0;
        settle(&world, 5500);
        CHECK(!record_of(&world, "data"));
        world_free(&world);
}

static void a_second_request_to_recover_skips_the_back_off_again(void)
{
        static const char *const names[] = {"data"};
        struct world world;

        world_new(&world);
        put_loop(&world, "data", "");
        for (unsigned i = 0; i < 2; i++) {
                for (unsigned death = 0; death < 6; death++) {
                        settle(&world, 1);
                        if (fake_worker(names[0]))
                                fake_worker_die(fake_worker(names[0]));
                }
                settle(&world, 5);
                CHECK(!fake_worker(names[0]));
                CHECK_INT(device_store_request_recover(world.store, names[0]), 0);
                settle(&world, 1);
                CHECK(fake_worker(names[0]));
        }
        world_free(&world);
}

/* Neither Live for a spec that is not served, nor the old spec's reason for the new one. */
static void nothing_is_said_of_a_new_spec_that_is_true_of_the_old_one(void)
{
        struct world world;

        world_new(&world);
        put_loop(&world, "data", "");
        bring_up(&world, "data", "file:1");
        fake_get_info_error = -ETIMEDOUT;
        put_loop(&world, "data", ",\"blockSize\":4096");
        settle(&world, 5);
        CHECK(record_of(&world, "data")->status.observed_generation < 2
                || phase_of(&world, "data") != PHASE_LIVE);
        world_free(&world);
}

/* The number may be somebody else's next, and udev would make that disk look like ours. */
static void what_udev_is_told_goes_with_the_disk(void)
{
        struct world world;
        char path[96];

        world_new(&world);
        snprintf(path, sizeof(path), "%s/disks/ublkb0", world.path);
        put_loop(&world, "data", "");
        bring_up(&world, "data", "file:1");
        CHECK_INT(access(path, F_OK), 0);
        fake_disks[0].there = false; /* somebody else deleted it */
        fake_worker_die(fake_worker("data"));
        settle(&world, 5);
        CHECK(access(path, F_OK) < 0);
        world_free(&world);
}

/* Another worker beside one that lives would wait for its queues for ever. */
static void no_worker_is_started_while_one_may_live(void)
{
        struct world world;

        world_new(&world);
        put_loop(&world, "data", "");
        reconciler_free(world.reconciler);
        fake_adopt_error = -EMFILE;
        start_reconciler(&world);
        settle(&world, 5);
        CHECK(!fake_worker("data"));
        CHECK_STR(record_of(&world, "data")->status.reason, "WorkerUnreachable");
        fake_adopt_error = -ENOENT;
        put_loop(&world, "data", ",\"labels\":{\"a\":\"b\"}"); /* looks again at once */
        settle(&world, 5);
        CHECK(fake_worker("data"));
        world_free(&world);
}

/* One that a supervisor started as it died leaves without having said whom it was made for. That says nothing
 * about the disk, whose I/O waits for the next worker. */
static void a_worker_that_leaves_without_a_word_does_not_take_the_disk_along(void)
{
        struct world world;

        world_new(&world);
        put_loop(&world, "data", "");
        bring_up(&world, "data", "file:1");
        reconciler_free(world.reconciler);
        fake_disks[0].device.state = KERNEL_STATE_QUIESCED;
        fake_adopt_error = 0;
        start_reconciler(&world);
        settle(&world, 0);
        fake_worker_leave(fake_worker("data"));
        fake_adopt_error = -ENOENT;
        settle(&world, 5);
        CHECK_INT(fake_disks[0].device.state, KERNEL_STATE_QUIESCED);
        fake_worker_die(fake_worker("data"));
        bring_up(&world, "data", "file:1");
        CHECK(fake_disks[0].there);
        world_free(&world);
}

/* While a try is under way, its deadline is not the time of the next one. */
static void a_next_try_is_told_only_while_one_is_waited_for(void)
{
        struct world world;

        world_new(&world);
        put_loop(&world, "data", "");
        settle(&world, 5);
        fake_worker_die(fake_worker("data"));
        settle(&world, 5); /* the second starts at once, and does not say anything */
        CHECK(fake_worker("data"));
        CHECK(!strstr(record_of(&world, "data")->status.message, "next try"));
        fake_worker_die(fake_worker("data"));
        settle(&world, 5);
        CHECK(!fake_worker("data"));
        CHECK(strstr(record_of(&world, "data")->status.message, "next try"));
        world_free(&world);
}

int main(void)
{
        many_devices_that_choose_a_number_at_once();
        a_disk_grows_after_its_worker();
        a_disk_does_not_grow_into_another();
        a_restart_replaces_the_worker_once();
        a_late_disk_is_not_forgotten_for_another_number();
        what_the_kernel_leaves_out_is_not_asked_for_again();
        a_disk_that_was_opened_since_stays_until_it_is_closed();
        a_stranger_that_is_faster_gets_another_number();
        of_two_that_open_one_store_at_once_one_wins();
        a_disk_without_a_worker_keeps_its_store();
        a_disk_without_a_worker_keeps_its_store_over_a_restart();
        a_recovery_does_not_join_another_writer();
        a_record_that_could_not_be_erased_goes_later();
        a_second_request_to_recover_skips_the_back_off_again();
        nothing_is_said_of_a_new_spec_that_is_true_of_the_old_one();
        what_udev_is_told_goes_with_the_disk();
        no_worker_is_started_while_one_may_live();
        a_worker_that_leaves_without_a_word_does_not_take_the_disk_along();
        a_next_try_is_told_only_while_one_is_waited_for();
        return check_report();
}
