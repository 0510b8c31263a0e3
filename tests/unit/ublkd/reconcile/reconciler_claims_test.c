/* SPDX-License-Identifier: MIT */
/* Which device has a backing store: the reconciler over a fake kernel and fake workers. */
#include "tests/unit/check.h"
#include "reconciler_world.h"
#include "ublkd/runtime/claim_file.h"
#include "ublkd/reconcile/runtime_remade.h"
#include "ublkd/store/device_record.h"
#include "ublkd/records/record_file.h"

#include <stdlib.h>
#include <unistd.h>

enum { LOST_NUMBER = 7 };

static bool lost_disk_is_there;

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);

/* What /sys would show of the lost disk. */
int __wrap_access(const char *path, int mode)
{
        if (strcmp(path, "/sys/class/ublk-char/ublkc7") == 0)
                return lost_disk_is_there ? 0 : -1;
        return __real_access(path, mode);
}

/* A manual disk whose worker has died. */
static void world_new_with_orphan(struct world *world)
{
        world_new(world);
        world_put_loop(world, "data", ",\"recovery\":{\"trigger\":\"manual\"}");
        world_bring_up(world, "data", "file:1");
        fake_worker_die(fake_worker("data"));
        world_settle(world, 5);
        CHECK_INT(world_phase(world, "data"), PHASE_QUIESCED);
}

static void of_two_that_open_one_store_at_once_one_wins(void)
{
        static const char *const names[] = {"one", "two"};
        struct world world;

        world_new(&world);
        world_put_loop(&world, "one", "");
        world_put_loop(&world, "two", "");
        world_settle(&world, 0);
        fake_worker_open(fake_worker("one"), "file:1");
        fake_worker_open(fake_worker("two"), "file:1");
        world_settle(&world, 5);
        world_churn(&world, names, 2, "file:1");
        CHECK_INT((world_phase(&world, "one") == PHASE_LIVE) + (world_phase(&world, "two") == PHASE_LIVE), 1);
        CHECK_INT(
                world_record(&world, world_phase(&world, "one") == PHASE_LIVE ? "two" : "one")->status.reason,
                REASON_BACKING_IN_USE);
        world_free(&world);
}

static void a_disk_does_not_grow_into_another(void)
{
        struct world world;

        world_new(&world);
        world.host.features = WORLD_GROWS;
        world_put_size(&world, "low", 1024, 0);
        world_bring_up(&world, "low", "file:1");
        world_put_size(&world, "high", 1024, 1536 << 10);
        world_settle(&world, 0);
        fake_worker("high")->start = 1536 << 10;
        world_bring_up(&world, "high", "file:1");
        world_put_size(&world, "low", 2048, 0);
        world_settle(&world, 5);
        CHECK_INT(fake_worker("low")->asked, 0);
        CHECK_INT(world_record(&world, "low")->status.reason, REASON_CANNOT_GROW);
        CHECK(strstr(world_record(&world, "low")->status.message, "\"high\""));
        CHECK_INT(world_phase(&world, "low"), PHASE_LIVE);
        world_free(&world);
}

/* The requests that wait in a disk without a worker will be written: no other device may get its store. */
static void a_disk_without_a_worker_keeps_its_store(void)
{
        static const char *const names[] = {"thief"};
        struct world world;

        world_new_with_orphan(&world);
        world_put_loop(&world, "thief", "");
        world_churn(&world, names, 1, "file:1");
        CHECK_INT(world_record(&world, "thief")->status.reason, REASON_BACKING_IN_USE);
        CHECK_INT(device_store_request_recover(world.store, "data"), 0);
        world_bring_up(&world, "data", "file:1");
        world_free(&world);
}

/* The same after a restart of ublkd: no worker can report what the disk writes to. */
static void a_disk_without_a_worker_keeps_its_store_over_a_restart(void)
{
        static const char *const names[] = {"athief"};
        struct world world;

        world_new_with_orphan(&world);
        world_stop_reconciler(&world);
        world_start_reconciler(&world);
        world_put_loop(&world, "athief", "");
        world_churn(&world, names, 1, "file:1");
        CHECK_INT(world_phase(&world, "data"), PHASE_QUIESCED);
        CHECK_INT(world_record(&world, "athief")->status.reason, REASON_BACKING_IN_USE);
        CHECK_INT(device_store_request_delete(world.store, "data", true), 0);
        world_settle(&world, 50);
        CHECK(!world_record(&world, "data"));
        world_put_loop(&world, "heir", "");
        world_bring_up(&world, "heir", "file:1");
        world_free(&world);
}

static const char *refused_for; /* why ublkd has killed a worker; NULL: not reported */

void __real_worker_proc_refuse(struct worker_proc *worker, const char *fault);
void __wrap_worker_proc_refuse(struct worker_proc *worker, const char *fault);
void __wrap_worker_proc_refuse(struct worker_proc *worker, const char *fault)
{
        refused_for = fault;
        __real_worker_proc_refuse(worker, fault);
}

/* ublkd starts again, and finds the worker of "data", which was of `file:1`, with this claim. */
static void world_new_with_found(struct world *world, const char *key, uint64_t start, uint64_t end)
{
        struct fake_worker *worker;

        world_new(world);
        world->host.features = WORLD_GROWS;
        world_put_loop(world, "data", "");
        world_bring_up(world, "data", "file:1");
        world_restart_with_workers(world);
        worker = fake_worker("data");
        refused_for = NULL;
        CHECK_INT(backing_claims_add(&worker->params.claims,
                          &(struct backing_claim){
                                  .key = (char *)key, .start = start, .end = end, .writes = true}),
                0);
        fake_worker_greet(worker, world_record(world, "data")->epoch, 0);
        world_settle(world, 5);
}

static void a_worker_that_is_found_keeps_the_claim_that_was_written_down(void)
{
        static const struct {
                const char *key;
                uint64_t start, end;
                bool refused;
        } cases[] = {
                {"file:1", 0,    1 << 20,       false},
                {"file:1", 4096, 1 << 20,       false}, /* less is harmless */
                {"file:2", 0,    1 << 20,       true }, /* another device's, perhaps */
                {"file:1", 0,    (1 << 20) + 1, true }, /* more than its disk has */
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct world world;

                world_new_with_found(&world, cases[i].key, cases[i].start, cases[i].end);
                CHECK_INT(fake_kills, cases[i].refused);
                CHECK(!refused_for == !cases[i].refused);
                if (!cases[i].refused)
                        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
                world_free(&world);
        }
}

/* A worker that names the store of another disk does not take it away. */
static void a_worker_that_is_found_takes_no_store_of_another_disk(void)
{
        struct world world;

        world_new_with_found(&world, "file:2", 0, 1 << 20);
        world_put_loop(&world, "other", "");
        world_bring_up(&world, "other", "file:2");
        CHECK_INT(world_phase(&world, "other"), PHASE_LIVE);
        world_free(&world);
}

/* A supervisor that has just started, and found no claim, does not know what a disk without a worker writes
 * to. */
static void a_recovery_does_not_join_another_writer(void)
{
        static const char *const names[] = {"data"};
        struct world world;
        char command[128];

        world_new_with_orphan(&world);
        world_stop_reconciler(&world);
        snprintf(command, sizeof(command), "rm %s/workers/*.claim",
                world.path); /* an older ublkd wrote none */
        CHECK_INT(system(command), 0);
        world_start_reconciler(&world);
        world_settle(&world, 5);
        CHECK_INT(world_phase(&world, "data"), PHASE_QUIESCED);
        world_put_loop(&world, "thief", "");
        world_bring_up(&world, "thief", "file:1");
        CHECK_INT(device_store_request_recover(world.store, "data"), 0);
        world_settle(&world, 5);
        world_churn(&world, names, 1, "file:1");
        CHECK_INT(world_record(&world, "data")->status.reason, REASON_BACKING_IN_USE);
        CHECK_INT(fake_disks[0].state, KERNEL_STATE_QUIESCED);
        world_free(&world);
}

/* Return whether an event contains the words. The status of a short back-off may be over already. */
static bool is_reported(const struct world *world, const char *words)
{
        const struct event_log *log = device_store_events(world->store);

        for (size_t i = 0; i < event_log_count(log); i++)
                if (strstr(event_log_at(log, i)->message, words))
                        return true;
        return false;
}

/* "data" is served; the worker of "thief" finds its store locked by `holder`, and reports it in these
 * words. */
static void world_new_with_thief(struct world *world, pid_t holder, const char *words)
{
        world_new(world);
        world_put_loop(world, "data", "");
        world_bring_up(world, "data", "file:1");
        world_put_loop(world, "thief", "");
        world_settle(world, 0);
        if (CHECK(fake_worker("thief")))
                fake_worker_find_locked(fake_worker("thief"), holder, words);
        world_settle(world, 5);
}

/* The message names the device, not a process to kill. */
static void a_store_that_a_worker_of_ours_has_locked_is_its_devices(void)
{
        struct world world;

        world_new_with_thief(&world, FAKE_PID, "/x is in use by another program; end it.");
        CHECK(is_reported(&world, "in use by the device \"data\" (/dev/ublkb0)"));
        CHECK(!is_reported(&world, "/x is in use"));
        world_free(&world);
        world_new_with_thief(&world, 47, "/x is in use by process 47 (qemu); end it.");
        CHECK(is_reported(&world, "process 47 (qemu)"));
        world_free(&world);
}

/* "again" finds the store of a disk that the database has lost locked by the worker of that disk. */
static void world_new_with_lost_worker(struct world *world, const char *lost_name)
{
        struct adoptable item = {
                .uid = "0b7a1c9e-0000-4000-8000-1234567890ab", .number = LOST_NUMBER, .pid = 47};

        world_new(world);
        item.name = strdup(lost_name);
        CHECK_INT(adoptables_add(&world->host.adoptable, &item), 0);
        world_put_loop(world, "again", "");
        world_settle(world, 0);
        if (CHECK(fake_worker("again")))
                fake_worker_find_locked(
                        fake_worker("again"), item.pid, "/x is in use by process 47 (ublkd-worker); end it.");
        world_settle(world, 5);
        CHECK(!is_reported(world, "end it"));
}

/* Advice to end the worker would take the disk from its openers. */
static void a_store_that_the_worker_of_a_lost_disk_has_locked_is_to_be_adopted(void)
{
        struct world world;

        world_new_with_lost_worker(&world, "lost");
        CHECK(is_reported(&world, "'ublkctl adopt lost' adopts that disk"));
        adoptables_clear(&world.host.adoptable);
        world_free(&world);
        world_new_with_lost_worker(&world, "again"); /* its own spec was applied once more */
        CHECK(is_reported(&world, "'ublkctl adopt --name NAME 0b7a1c9e-0000-4000-8000-1234567890ab' adopts"));
        CHECK(is_reported(&world, "'ublkctl delete again', then 'ublkctl adopt again'"));
        adoptables_clear(&world.host.adoptable);
        world_free(&world);
}

/* Its store lies on a second one, somewhere in it if `mapped`. */
static void lie_on(struct fake_worker *worker, const char *key, bool mapped)
{
        const struct backing_claim claim = {(char *)(uintptr_t)key, 0, UINT64_MAX, true, mapped};

        CHECK_INT(backing_claims_add(&worker->params.claims, &claim), 0);
}

/* Another program uses its store (error), or that is unknown (0). */
static void share(struct fake_worker *worker, int error, const char *reason, const char *sentence)
{
        CHECK_INT(problem_add(&worker->params.sharing, error, "/target/path", reason, "%s", sentence), 0);
}

/* Two disks of other names, which lie on the same one. */
static void world_new_with_two(struct world *world, bool mapped, bool other_mapped)
{
        world_new(world);
        world_put_loop(world, "one", "");
        world_settle(world, 0);
        lie_on(fake_worker("one"), "disk:8:16", mapped);
        world_bring_up(world, "one", "file:1");
        world_put_loop(world, "two", "");
        world_settle(world, 0);
        lie_on(fake_worker("two"), "disk:8:16", other_mapped);
        fake_worker_open(fake_worker("two"), "file:2");
        world_settle(world, 5);
}

static void what_lies_below_a_store_belongs_to_its_disk(void)
{
        struct world world;

        world_new_with_two(&world, true, false);
        CHECK(is_reported(&world, "in use by the device \"one\""));
        CHECK_INT(world_phase(&world, "one"), PHASE_LIVE);
        world_free(&world);
        world_new_with_two(&world, true, true);
        CHECK(!is_reported(&world, "in use by the device \"one\""));
        world_free(&world);
}

/* A new disk, whose worker opens its store when the test says so. */
static struct fake_worker *world_new_with_opener(struct world *world)
{
        world_new(world);
        world_put_loop(world, "data", "");
        world_settle(world, 0);
        return fake_worker("data");
}

static void a_new_disk_is_not_created_beside_another_writer(void)
{
        struct world world;
        struct fake_worker *worker = world_new_with_opener(&world);
        unsigned adds = fake_kernel.adds;

        share(worker, EBUSY, "BackingInUse", "It is what /dev/loop0 lies on.");
        fake_worker_open(worker, "file:1");
        world_settle(&world, 5);
        CHECK(is_reported(&world, "/dev/loop0"));
        CHECK_INT(fake_kernel.adds, adds);
        CHECK(world_phase(&world, "data") != PHASE_LIVE);
        world_free(&world);
}

static void an_unknown_condition_is_reported_and_refuses_nothing(void)
{
        struct world world;
        struct fake_worker *worker = world_new_with_opener(&world);

        share(worker, 0, "BackingShareUnknown", "It lies on NFS.");
        world_bring_up(&world, "data", "file:1");
        CHECK(world_count_events(&world, REASON_BACKING_SHARE_UNKNOWN));
        world_free(&world);
}

/* Before, each was an event, and added its reason to those that ublkd knows. */
static void a_worker_cannot_make_up_any_number_of_conditions(void)
{
        struct world world;
        struct fake_worker *worker = world_new_with_opener(&world);
        char reason[32], sentence[32];

        for (int i = 0; i < 40; i++) {
                snprintf(reason, sizeof(reason), "MadeUp%d", i);
                snprintf(sentence, sizeof(sentence), "It lies on number %d.", i);
                share(worker, 0, reason, sentence);
        }
        world_bring_up(&world, "data", "file:1");
        CHECK(is_reported(&world, "It lies on number 15."));
        CHECK(!is_reported(&world, "It lies on number 16."));
        CHECK(world_count_events(&world, REASON_OTHER) > 0);
        world_free(&world);
}

/* Its I/O waits. */
static void a_disk_that_exists_recovers_beside_another_writer(void)
{
        struct world world;

        world_new_with_orphan(&world);
        CHECK_INT(device_store_request_recover(world.store, "data"), 0);
        world_settle(&world, 0);
        share(fake_worker("data"), EBUSY, "BackingInUse", "It is what /dev/loop0 lies on.");
        world_bring_up(&world, "data", "file:1");
        CHECK(world_count_events(&world, REASON_BACKING_IN_USE));
        world_free(&world);
}

/* A disk on the store "file:1" whose record the database has lost. */
static void leave_lost_disk(struct world *world)
{
        static const char uid[] = "0b7a1c9e-0000-4000-8000-1234567890ab",
                          spec[] = "{\"name\":\"lost\",\"target\":{\"type\":\"loop\",\"path\":\"/f\"}}";
        _cleanup_record_file_ struct record_file file = {
                .record = {.generation = 1, .epoch = 1, .number = LOST_NUMBER}
        };
        _cleanup_claims_ struct backing_claims claims = {};
        _cleanup_free_ char *text = NULL;

        file.record.name = strdup("lost");
        strcpy(file.record.uid, uid);
        CHECK_INT(device_record_parse(&file.record, spec), 0);
        CHECK_INT(record_file_make(&file, &text), 0);
        CHECK_INT(runtime_dir_write_record(world->dir, uid, text), 0);
        CHECK_INT(backing_claims_add(&claims,
                          &(struct backing_claim){.key = (char[]){"file:1"}, .end = 1 << 30, .writes = true}),
                0);
        CHECK_INT(claim_file_write(world->dir, uid, &claims), 0);
        lost_disk_is_there = true;
}

/* The scan for foreign disks has not ended yet. */
static void the_store_of_a_lost_disk_is_its_own(void)
{
        static const char *const names[] = {"again"};
        struct world world;

        world_new(&world);
        world_stop_reconciler(&world);
        leave_lost_disk(&world);
        world_start_reconciler(&world);
        /* A record with that number, whose disk has another one, does not describe the lost disk. */
        world_put_loop(&world, "other", ",\"enabled\":false");
        world_settle(&world, 0);
        CHECK_INT(device_store_assign_number(world.store, "other", LOST_NUMBER), 0);
        world_put_loop(&world, "again", "");
        world_settle(&world, 0);
        CHECK_INT(device_store_set_status(world.store, "other",
                          &(struct device_status){.phase = PHASE_FAILED, .disk = true, .number = 3}),
                0);
        fake_worker_open(fake_worker("again"), "file:1");
        world_settle(&world, 5);
        CHECK_INT(world_record(&world, "again")->status.reason, REASON_BACKING_IN_USE);
        CHECK(strstr(world_record(&world, "again")->status.message, "ublkctl adopt lost"));
        lost_disk_is_there = false;
        world_churn(&world, names, 1, "file:1");
        CHECK_INT(world_phase(&world, "again"), PHASE_LIVE);
        world_free(&world);
}

/* The runtime directory was removed, and is there again. */
static void what_is_known_is_written_down_again(void)
{
        _cleanup_claims_ struct backing_claims claims = {};
        _cleanup_free_ char *params = NULL;
        struct world world;
        char command[192];
        const char *uid;

        world_new(&world);
        world_put_loop(&world, "data", "");
        world_bring_up(&world, "data", "file:1");
        uid = world_record(&world, "data")->uid;
        snprintf(command, sizeof(command), "rm -r %s/workers/* %s/disks", world.path, world.path);
        CHECK_INT(system(command), 0);
        reconciler_runtime_remade(world.reconciler);
        world_settle(&world, 5);
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        CHECK_INT(claim_file_read(world.dir, uid, &claims), 0);
        CHECK_INT(claims.count, 1);
        CHECK_INT(runtime_dir_read(world.dir, uid, RUNTIME_PARAMS, &params), 0);
        snprintf(command, sizeof(command), "%s/disks/ublkb0", world.path); /* what udev reads */
        CHECK_INT(__real_access(command, R_OK), 0);
        world_free(&world);
}

int main(void)
{
        what_is_known_is_written_down_again();
        the_store_of_a_lost_disk_is_its_own();
        a_store_that_the_worker_of_a_lost_disk_has_locked_is_to_be_adopted();
        what_lies_below_a_store_belongs_to_its_disk();
        a_new_disk_is_not_created_beside_another_writer();
        an_unknown_condition_is_reported_and_refuses_nothing();
        a_worker_cannot_make_up_any_number_of_conditions();
        a_disk_that_exists_recovers_beside_another_writer();
        of_two_that_open_one_store_at_once_one_wins();
        a_disk_does_not_grow_into_another();
        a_disk_without_a_worker_keeps_its_store();
        a_disk_without_a_worker_keeps_its_store_over_a_restart();
        a_recovery_does_not_join_another_writer();
        a_worker_that_is_found_keeps_the_claim_that_was_written_down();
        a_worker_that_is_found_takes_no_store_of_another_disk();
        a_store_that_a_worker_of_ours_has_locked_is_its_devices();
        return check_report();
}
