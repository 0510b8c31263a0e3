/* SPDX-License-Identifier: MIT */
/* Which store serves a disk: the reconciler over a fake kernel and fake workers. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/reconcile/reconciler_world.h"
#include "tests/unit/ublkd/service_manager.h"
#include "ublkd/reconcile/device_reach.h"
#include "ublkd/runtime/claim_file.h"
#include "ublkd/runtime/fd_store.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int new_store(void)
{
        return memfd_create("store", MFD_CLOEXEC);
}

static bool is_same_file(int one, int other)
{
        struct stat a, b;

        return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/* Let its worker open the store `fd`, which the caller closes. */
static void bring_up_on(struct world *world, const char *identity, int fd)
{
        world_settle(world, 0);
        fake_worker_store(fake_worker("data"), identity, fcntl(fd, F_DUPFD_CLOEXEC, 0));
        world_bring_up(world, "data", "file:1");
}

/* ublkd and the worker die: the next ublkd cannot ask a worker. */
static void lose_the_store(struct world *world)
{
        int number = world_record(world, "data")->number;

        world_stop_reconciler(world);
        fake_disks[number].state = KERNEL_STATE_QUIESCED;
        world_start_reconciler(world);
        world_settle(world, 5);
}

static const struct device_status *status_of(const struct world *world)
{
        return &world_record(world, "data")->status;
}

static void the_next_worker_gets_the_store_of_the_one_before(void)
{
        int store = new_store();
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        bring_up_on(&world, "file:a", store);
        CHECK(status_of(&world)->backing.kept);
        CHECK_STR(status_of(&world)->backing.identity.lasting, "file:a");
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 5);
        CHECK(is_same_file(fake_worker("data")->given, store));
        world_bring_up(&world, "data", "file:1"); /* it reports no store: it has the one that it was given */
        CHECK(status_of(&world)->backing.kept);
        world_free(&world);
        close_fd(store);
}

static void an_adopted_worker_gives_the_store(void)
{
        int store = new_store();
        struct world world;
        struct fake_worker *worker;

        world_new(&world);
        world_put_loop(&world, "data", "");
        bring_up_on(&world, "file:a", store);
        world_restart_with_workers(&world);
        worker = fake_worker("data");
        fake_worker_store(worker, "file:a", fcntl(store, F_DUPFD_CLOEXEC, 0));
        fake_worker_greet(worker, world_record(&world, "data")->epoch, world_record(&world, "data")->number);
        world_settle(&world, 5);
        CHECK(status_of(&world)->backing.kept);
        world_free(&world);
        close_fd(store);
}

/* An attacker may control the worker by now: ublkd does not accept that the disk was created on another
 * store. */
static void an_adopted_worker_cannot_give_another_store(void)
{
        int store = new_store(), other = new_store();
        struct world world;
        struct fake_worker *worker;

        world_new(&world);
        world_put_loop(&world, "data", "");
        bring_up_on(&world, "file:a", store);
        world_restart_with_workers(&world);
        worker = fake_worker("data");
        fake_worker_store(worker, "file:a", fcntl(other, F_DUPFD_CLOEXEC, 0));
        fake_worker_greet(worker, world_record(&world, "data")->epoch, world_record(&world, "data")->number);
        world_settle(&world, 5);
        CHECK(!status_of(&world)->backing.kept);
        CHECK_STR(status_of(&world)->backing.identity.lasting, "file:a");
        world_free(&world);
        close_fd(store);
        close_fd(other);
}

static void check_refused(struct world *world, const char *found)
{
        CHECK_INT(world_phase(world, "data"), PHASE_FAILED);
        CHECK_INT(status_of(world)->reason, REASON_BACKING_CHANGED);
        CHECK_STR(status_of(world)->backing.found.lasting, found);
        CHECK_STR(status_of(world)->backing.identity.lasting, "file:a");
}

/* The worker of another version has not compared. */
static void another_store_is_refused(void)
{
        int store = new_store();
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        bring_up_on(&world, "file:a", store);
        lose_the_store(&world);
        CHECK_INT(fake_worker("data")->given, -1);
        fake_worker_store(fake_worker("data"), "file:b", fcntl(store, F_DUPFD_CLOEXEC, 0));
        fake_worker_open(fake_worker("data"), "file:1");
        world_settle(&world, 5);
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 5);
        check_refused(&world, "file:b");
        world_free(&world);
        close_fd(store);
}

static void consent_is_to_one_store(void)
{
        int store = new_store();
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        bring_up_on(&world, "file:a", store);
        lose_the_store(&world);
        CHECK_INT(device_store_accept_backing(world.store, "data", "file:a"),
                -ESTALE); /* nothing was refused yet */
        fake_worker_store(fake_worker("data"), "file:b", fcntl(store, F_DUPFD_CLOEXEC, 0));
        fake_worker_open(fake_worker("data"), "file:1");
        world_settle(&world, 5);
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 5);
        CHECK_INT(device_store_accept_backing(world.store, "data", "file:c"), -ESTALE);
        check_refused(&world, "file:b");
        CHECK(fake_worker("data")->expected_served);
        CHECK_INT(device_store_accept_backing(world.store, "data", "file:b"), 0);
        fake_worker_die(fake_worker("data")); /* it was started before that */
        world_settle(&world, 5);
        CHECK_INT(device_store_request_recover(world.store, "data"), 0); /* skips the back-off */
        world_settle(&world, 5);
        CHECK(fake_worker("data")->exists);
        CHECK(!fake_worker("data")->expected_served);
        bring_up_on(&world, "file:b", store);
        CHECK_STR(status_of(&world)->backing.identity.lasting, "file:b");
        CHECK_STR(status_of(&world)->backing.found.lasting, "");
        world_free(&world);
        close_fd(store);
}

/* The record would name another store than the one that the disk is served from. */
static void consent_ends_when_a_worker_has_the_right_store(void)
{
        int store = new_store();
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        bring_up_on(&world, "file:a", store);
        lose_the_store(&world);
        fake_worker_store(fake_worker("data"), "file:b", fcntl(store, F_DUPFD_CLOEXEC, 0));
        fake_worker_open(fake_worker("data"), "file:1");
        world_settle(&world, 5);
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 5);
        check_refused(&world, "file:b");
        CHECK_INT(device_store_try_again(world.store, "data"), 0);
        world_settle(&world, 0);
        fake_worker_store(fake_worker("data"), "file:a", fcntl(store, F_DUPFD_CLOEXEC, 0));
        fake_worker_open(fake_worker("data"), "file:1");
        world_settle(&world, 0);
        CHECK_STR(status_of(&world)->backing.found.lasting, "");
        CHECK_INT(device_store_accept_backing(world.store, "data", "file:b"), -ESTALE);
        world_free(&world);
        close_fd(store);
}

/* A block size says nothing about the store: what the path leads to by now may be another file. */
static void a_new_disk_stays_on_its_store(void)
{
        int store = new_store();
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        bring_up_on(&world, "file:a", store);
        world_put_loop(&world, "data", ",\"blockSize\":4096");
        world_settle(&world, 50);
        CHECK_INT(fake_worker("data")->given, -1);
        fake_worker_store(fake_worker("data"), "file:b", fcntl(store, F_DUPFD_CLOEXEC, 0));
        fake_worker_open(fake_worker("data"), "file:1");
        world_settle(&world, 5);
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 5);
        check_refused(&world, "file:b");
        world_free(&world);
        close_fd(store);
}

static void another_target_may_be_on_another_store(void)
{
        int store = new_store();
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        bring_up_on(&world, "file:a", store);
        world_put_size(&world, "data", 1024, 4096);
        world_settle(&world, 50);
        CHECK_INT(fake_worker("data")->given, -1);
        bring_up_on(&world, "file:b", store);
        CHECK_STR(status_of(&world)->backing.identity.lasting, "file:b");
        world_free(&world);
        close_fd(store);
}

/* Wait until the disk is removed and a worker of the next disk has started. No worker recovers the disk. */
static void wait_for_the_next_disk(struct world *world)
{
        int number = world_record(world, "data")->number;

        for (unsigned i = 0; i < 20000; i++) {
                struct fake_worker *worker = fake_worker("data");
                bool opens = worker && fake_worker_stage(worker) == WORKER_STAGE_OPENING;

                if (opens && !fake_disks[number].exists)
                        return;
                if (opens || (worker && fake_worker_stage(worker) == WORKER_STAGE_LEAVING))
                        fake_worker_die(worker);
                world_settle(world, 0);
        }
        CHECK(!"no worker was started for another disk");
}

/* Its file may have been deleted meanwhile: then only the descriptor has the data. */
static void a_disk_that_dies_with_its_worker_is_made_on_its_store(void)
{
        int store = new_store();
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", ",\"recovery\":{\"onCrash\":\"none\"}");
        bring_up_on(&world, "file:a", store);
        fake_worker_die(fake_worker("data"));
        fake_disks[0].state = KERNEL_STATE_DEAD; /* the driver stops it */
        wait_for_the_next_disk(&world);
        CHECK(is_same_file(fake_worker("data")->given, store));
        world_bring_up(&world, "data", "file:1"); /* it reports no store: it has the one that it was given */
        CHECK(status_of(&world)->backing.kept);
        CHECK_STR(status_of(&world)->backing.identity.lasting, "file:a");
        world_put_loop(&world, "data", ",\"recovery\":{\"onCrash\":\"none\"},\"enabled\":false");
        world_settle(&world, 50);
        CHECK(!status_of(&world)->backing.kept);
        world_put_loop(&world, "data", ",\"recovery\":{\"onCrash\":\"none\"}");
        world_settle(&world, 50);
        CHECK_INT(fake_worker("data")->given, -1);
        world_free(&world);
        close_fd(store);
}

/* Also where the file system has no locks. */
static void no_device_gets_the_store_of_a_disk_that_is_recreated(void)
{
        int store = new_store();
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", ",\"recovery\":{\"onCrash\":\"none\"}");
        bring_up_on(&world, "file:a", store);
        fake_worker_die(fake_worker("data"));
        fake_disks[0].state = KERNEL_STATE_DEAD;
        wait_for_the_next_disk(&world);
        world_put_loop(&world, "other", "");
        world_settle(&world, 0);
        fake_worker_open(fake_worker("other"), "file:1");
        world_wait_reason(&world, "other", REASON_BACKING_IN_USE);
        world_wait_value(&world, "other", "\"data\"");
        world_bring_up(&world, "data", "file:1");
        CHECK(world_phase(&world, "other") != PHASE_LIVE);
        world_free(&world);
        close_fd(store);
}

/* Return whether an event of "other" with that reason contains `words`. */
static bool has_event(const struct world *world, enum condition_reason reason, const char *words)
{
        const struct event_log *log = device_store_events(world->store);

        for (size_t i = 0; i < event_log_count(log); i++) {
                const struct device_event *event = event_log_at(log, i);

                if (strcmp(event->device, "other") == 0 && event->reason == reason
                        && strstr(event->message, words))
                        return true;
        }
        return false;
}

/* "data" waits without a worker; the worker of "other" opens `opened`, which ublkd itself has locked. */
static void find_kept_by_ublkd(struct world *world, int store, int opened)
{
        struct fake_worker *worker;

        world_new(world);
        world_put_loop(world, "data", ",\"recovery\":{\"trigger\":\"manual\"}");
        bring_up_on(world, "file:a", store);
        fake_worker_die(fake_worker("data"));
        world_settle(world, 5);
        CHECK_INT(world_phase(world, "data"), PHASE_QUIESCED);
        world_put_loop(world, "other", "");
        world_settle(world, 0);
        worker = fake_worker("other");
        fake_worker_refuse_store(worker, "file:x", opened);
        fake_worker_find_locked(worker, getpid(), "/x is in use by process 1 (ublkd), for a disk of ublkd.");
        world_settle(world, 5);
}

/* The kept descriptor has the lock: ublkd is the process that the kernel shows. */
static void the_lock_of_a_kept_store_is_its_devices(void)
{
        int store = new_store(), stranger = new_store();
        struct world world;

        find_kept_by_ublkd(&world, store, store);
        CHECK(has_event(&world, REASON_BACKING_IN_USE, "in use by the device \"data\" (/dev/ublkb0);"));
        CHECK(!has_event(&world, REASON_BACKING_IN_USE, "process 1"));
        world_free(&world);
        find_kept_by_ublkd(&world, store, stranger); /* ublkd keeps that for no device */
        CHECK(has_event(&world, REASON_BACKING_IN_USE, "in use by process 1 (ublkd)"));
        world_free(&world);
        close_fd(store);
        close_fd(stranger);
}

/* Each of four long names could be the holder; the sentence ends with a whole name. */
static void names_of_holders_are_not_cut(void)
{
        static const char *const names[] = {"data", "one-with-a-name-of-more-than-forty-characters",
                "two-with-a-name-of-more-than-forty-characters",
                "three-with-a-name-of-more-than-forty-characters"};
        static const char *const keys[] = {"file:1", "file:2", "file:3", "file:4"};
        struct fake_worker *worker;
        int store = new_store();
        struct world world;

        world_new(&world);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                world_put_loop(&world, names[i], ",\"recovery\":{\"trigger\":\"manual\"}");
                world_settle(&world, 0);
                fake_worker_store(fake_worker(names[i]), "file:a", fcntl(store, F_DUPFD_CLOEXEC, 0));
                world_bring_up(&world, names[i], keys[i]);
                fake_worker_die(fake_worker(names[i]));
                world_settle(&world, 5);
                CHECK_INT(world_phase(&world, names[i]), PHASE_QUIESCED);
        }
        world_put_loop(&world, "other", "");
        world_settle(&world, 0);
        worker = fake_worker("other");
        fake_worker_refuse_store(worker, "file:x", store);
        fake_worker_find_locked(worker, getpid(), "/x is in use by process 1 (ublkd), for a disk of ublkd.");
        world_settle(&world, 5);
        CHECK(has_event(&world, REASON_BACKING_IN_USE, "-characters\" or others; two disks"));
        world_free(&world);
        close_fd(store);
}

static void a_disk_that_was_given_up_is_made_on_its_store(void)
{
        int store = new_store();
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", ",\"recovery\":{\"giveUpAfter\":\"1s\"}");
        bring_up_on(&world, "file:a", store);
        fake_worker_die(fake_worker("data"));
        wait_for_the_next_disk(&world);
        CHECK(is_same_file(fake_worker("data")->given, store));
        CHECK(status_of(&world)->backing.kept);
        world_free(&world);
        close_fd(store);
}

/* The target changed while ublkd did not run: the worker serves the store of the old spec. */
static void the_store_of_an_older_spec_is_not_that_of_the_next_disk(void)
{
        int store = new_store();
        struct world world;
        struct fake_worker *worker;

        world_new(&world);
        world_put_loop(&world, "data", "");
        bring_up_on(&world, "file:a", store);
        world_stop_reconciler(&world);
        world_put_size(&world, "data", 1024, 4096);
        fake_adopt_error = 0;
        world_start_reconciler(&world);
        worker = fake_worker("data");
        fake_worker_store(worker, "file:a", fcntl(store, F_DUPFD_CLOEXEC, 0));
        fake_worker_greet(worker, (uint16_t)(world_record(&world, "data")->epoch - 1),
                world_record(&world, "data")->number);
        fake_adopt_error = -ENOENT;
        wait_for_the_next_disk(&world);
        CHECK_INT(fake_worker("data")->given, -1);
        CHECK(!status_of(&world)->backing.kept);
        world_free(&world);
        close_fd(store);
}

/* While a file has a name, its data survive the disk. */
static void a_store_without_a_name_is_known_for_it(void)
{
        char path[] = "/tmp/reach-XXXXXX";
        int store = mkostemp(path, O_CLOEXEC);
        struct world world;

        world_new(&world);
        world_put_loop(&world, "data", "");
        CHECK_INT(reconciler_reach(world.reconciler, "data", NULL), BACKING_REACH_UNKNOWN);
        bring_up_on(&world, "file:a", store);
        CHECK_INT(reconciler_reach(world.reconciler, "data", NULL), BACKING_REACH_UNKNOWN);
        CHECK_INT(unlink(path), 0);
        CHECK_INT(reconciler_reach(world.reconciler, "data", NULL), BACKING_REACH_UNNAMED);
        CHECK_INT(reconciler_reach(world.reconciler, "other", NULL), BACKING_REACH_UNKNOWN);
        world_free(&world);
        close_fd(store);
}

static void bring_up_part(struct world *world, const char *name, uint64_t offset, int fd, bool claimed)
{
        char key[32];

        world_put_size(world, name, 1024, offset);
        world_settle(world, 0);
        fake_worker_disk(fake_worker(name), "wwid:a", fcntl(fd, F_DUPFD_CLOEXEC, 0), claimed);
        snprintf(key, sizeof(key), "disk:%s", name);
        world_bring_up(world, name, key);
}

/* Otherwise the next ublkd would lack it, and mkfs could open the block device. */
static void an_inherited_claim_is_kept_by_the_service_manager(void)
{
        int manager = fake_service_manager(), store = new_store();
        struct world world;
        char name[96], other[96], low[96];

        world_new(&world);
        world_stop_reconciler(&world);
        CHECK_INT(fd_store_new(&world.fd_store), 0);
        world_start_reconciler(&world);
        bring_up_part(&world, "low", 0, store, true);
        bring_up_part(&world, "high", 2 << 20, store, false);
        snprintf(name, sizeof(name), "FDNAME=store-claim-%s\n", world_record(&world, "high")->uid);
        snprintf(other, sizeof(other), "FDNAME=store-claim-%s", world_record(&world, "high")->uid);
        CHECK_INT(fake_service_manager_received(manager, "FDSTORE=1", name), 0);
        snprintf(low, sizeof(low), "FDSTOREREMOVE=1\nFDNAME=store-%s-%u", world_record(&world, "low")->uid,
                world_record(&world, "low")->epoch);
        CHECK_INT(device_store_request_delete(world.store, "low", true), 0);
        world_settle(&world, 50);
        CHECK(!device_store_get(world.store, "low"));
        /* systemd ignores an open file that it keeps already (service.c, service_add_fd_store). */
        CHECK(fake_service_manager_received_in_order(manager, low, name));
        CHECK_INT(device_store_request_delete(world.store, "high", true), 0);
        world_settle(&world, 50);
        CHECK(!device_store_get(world.store, "high"));
        CHECK_INT(fake_service_manager_received(manager, "FDSTOREREMOVE=1", other), 1);
        world_stop_reconciler(&world);
        world.fd_store = fd_store_free(world.fd_store);
        world_free(&world);
        close_fd(store);
        close_fd(manager);
}

/* What is there of a device when its record is erased. */
struct at_removal {
        const struct world *world;
        int manager;
        bool removed, has_claim, has_backing, released;
};

static void look_at_removal(void *userdata, const struct store_event *event)
{
        _cleanup_claims_ struct backing_claims claims = {};
        _cleanup_free_ char *text = NULL;
        struct at_removal *look = userdata;
        char name[96];

        if (event->kind != STORE_REMOVED)
                return;
        snprintf(name, sizeof(name), "FDNAME=store-%s-", event->uid);
        look->removed = true;
        look->has_claim = claim_file_read(look->world->dir, event->uid, &claims) >= 0;
        look->has_backing = runtime_dir_read(look->world->dir, event->uid, RUNTIME_BACKING, &text) >= 0;
        look->released = fake_service_manager_received(look->manager, "FDSTOREREMOVE=1", name) > 0;
}

/* ublkd dies while it looks for a number, and its worker with it: claim, backing file and the descriptor of the
 * service manager stay, for a record without a number. */
static void lose_a_device_without_a_number(struct world *world, int store)
{
        _cleanup_claims_ struct backing_claims claims = {};

        world_put_loop(world, "data", "");
        world_settle(world, 0);
        fake_kernel.get_info_error = -ETIMEDOUT;
        fake_worker_store(fake_worker("data"), "file:a", fcntl(store, F_DUPFD_CLOEXEC, 0));
        fake_worker_open(fake_worker("data"), "file:1");
        world_settle(world, 5);
        world_stop_reconciler(world);
        CHECK_INT(world_record(world, "data")->number, -1);
        CHECK_INT(claim_file_read(world->dir, world_record(world, "data")->uid, &claims), 0);
}

/* The next ublkd finds files and descriptors by the records. A descriptor without a record stays with the service
 * manager, and its lock keeps every other disk from the store. */
static void nothing_of_a_device_outlives_its_record(void)
{
        int manager = fake_service_manager(), store = new_store();
        struct world world;
        struct at_removal look = {.world = &world, .manager = manager};

        world_new(&world);
        world_stop_reconciler(&world);
        CHECK_INT(fd_store_new(&world.fd_store), 0);
        world_start_reconciler(&world);
        lose_a_device_without_a_number(&world, store);
        CHECK(fake_service_manager_received(manager, "FDSTORE=1", "FDNAME=store-") > 0);
        CHECK_INT(device_store_subscribe(world.store, look_at_removal, &look), 0);
        world_start_reconciler(&world);
        reconciler_set_control(world.reconciler, NULL); /* the driver does not answer yet */
        CHECK_INT(device_store_request_delete(world.store, "data", true), 0);
        world_settle(&world, 5);
        CHECK(look.removed);
        CHECK(!look.has_claim);
        CHECK(!look.has_backing);
        CHECK(look.released);
        device_store_unsubscribe(world.store, look_at_removal, &look);
        world_stop_reconciler(&world);
        world.fd_store = fd_store_free(world.fd_store);
        world_free(&world);
        close_fd(store);
        close_fd(manager);
}

int main(void)
{
        a_store_without_a_name_is_known_for_it();
        the_next_worker_gets_the_store_of_the_one_before();
        an_adopted_worker_gives_the_store();
        an_adopted_worker_cannot_give_another_store();
        another_store_is_refused();
        consent_is_to_one_store();
        consent_ends_when_a_worker_has_the_right_store();
        a_new_disk_stays_on_its_store();
        another_target_may_be_on_another_store();
        a_disk_that_dies_with_its_worker_is_made_on_its_store();
        no_device_gets_the_store_of_a_disk_that_is_recreated();
        the_lock_of_a_kept_store_is_its_devices();
        names_of_holders_are_not_cut();
        a_disk_that_was_given_up_is_made_on_its_store();
        the_store_of_an_older_spec_is_not_that_of_the_next_disk();
        an_inherited_claim_is_kept_by_the_service_manager();
        nothing_of_a_device_outlives_its_record();
        return check_report();
}
