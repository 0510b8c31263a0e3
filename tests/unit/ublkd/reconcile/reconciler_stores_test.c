/* SPDX-License-Identifier: MIT */
/* A disk over two backing stores: all of them or none, and each for itself. */
#include "tests/unit/check.h"
#include "tests/unit/put_device.h"
#include "tests/unit/ublkd/reconcile/reconciler_world.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/reconcile/backing/backing_wish.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/parts/reconciler_devices.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define FIRST "/target/children/0"
#define SECOND "/target/children/1"

enum { STORES = 2 };

struct place {
        struct world world;
        int files[STORES], other;
};

static int try_put(struct world *world, const char *one, const char *two)
{
        char text[512];

        snprintf(text, sizeof(text),
                "{\"name\":\"data\",\"target\":{\"type\":\"stripe\",\"children\":["
                "{\"type\":\"loop\",\"path\":\"%s\"},{\"type\":\"loop\",\"path\":\"%s\"}]}}",
                one, two);
        return put_device(world->store, text);
}

static void put(struct world *world, const char *one, const char *two)
{
        CHECK_INT(try_put(world, one, two), 0);
}

static void list(struct place *place, unsigned number, const char *identity, int fd)
{
        (void)place;
        fake_worker_listed(
                fake_worker("data"), number, STORES, identity, fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

static void begin(struct place *place)
{
        *place = (struct place){.other = memfd_create("other", MFD_CLOEXEC)};
        for (unsigned i = 0; i < STORES; i++)
                place->files[i] = memfd_create("store", MFD_CLOEXEC);
        world_new(&place->world);
        put(&place->world, "/a", "/b");
        world_settle(&place->world, 0);
        list(place, 0, "file:a", place->files[0]);
        list(place, 1, "file:b", place->files[1]);
        world_bring_up(&place->world, "data", "file:1");
        CHECK_INT(world_phase(&place->world, "data"), PHASE_LIVE);
}

static void end(struct place *place)
{
        world_free(&place->world);
        for (unsigned i = 0; i < STORES; i++)
                close_fd(place->files[i]);
        close_fd(place->other);
}

static const struct device_status *status_of(const struct place *place)
{
        return &world_record(&place->world, "data")->status;
}

/* ublkd and the worker die: no process has a descriptor. */
static void lose_the_stores(struct place *place)
{
        int number = world_record(&place->world, "data")->number;

        world_stop_reconciler(&place->world);
        fake_disks[number].state = KERNEL_STATE_QUIESCED;
        world_start_reconciler(&place->world);
        world_settle(&place->world, 5);
}

static void check_wanted(unsigned number, const char *identity, bool has_fd)
{
        const struct listed_store *wanted = &fake_worker("data")->wanted[number];

        CHECK_INT(fake_worker("data")->listed, STORES);
        CHECK_STR(wanted->identity.lasting, identity);
        CHECK_INT(wanted->has_fd, has_fd);
}

static void the_next_worker_gets_each_store(void)
{
        struct place place;

        begin(&place);
        if (CHECK_INT(status_of(&place)->store_count, STORES)) {
                CHECK_STR(status_of(&place)->stores[1].pointer, SECOND);
                CHECK_STR(status_of(&place)->stores[1].identity.lasting, "file:b");
                CHECK(status_of(&place)->stores[0].kept && status_of(&place)->stores[1].kept);
                CHECK(status_of(&place)->backing.kept);
        }
        fake_worker_die(fake_worker("data"));
        world_settle(&place.world, 5);
        check_wanted(0, "file:a", true);
        check_wanted(1, "file:b", true);
        CHECK(fake_worker("data")->wanted[0].was_served);
        CHECK(fake_worker("data")->wanted_fds[0] >= 0 && fake_worker("data")->wanted_fds[1] >= 0);
        world_bring_up(&place.world, "data", "file:1");
        CHECK_INT(world_phase(&place.world, "data"), PHASE_LIVE);
        end(&place);
}

static void an_adopted_worker_gives_each_store(void)
{
        struct place place;

        begin(&place);
        world_restart_with_workers(&place.world);
        list(&place, 0, "file:a", place.files[0]);
        list(&place, 1, "file:b", place.files[1]);
        fake_worker_greet(fake_worker("data"), world_record(&place.world, "data")->epoch,
                world_record(&place.world, "data")->number);
        world_settle(&place.world, 5);
        CHECK(status_of(&place)->backing.kept);
        end(&place);
}

/* Of these none is taken: the rest would be mixed with those of the next worker. */
static void an_adopted_worker_cannot_exchange_its_stores(void)
{
        struct place place;

        begin(&place);
        world_restart_with_workers(&place.world);
        list(&place, 0, "file:a", place.files[0]);
        list(&place, 1, "file:b", place.other);
        fake_worker_greet(fake_worker("data"), world_record(&place.world, "data")->epoch,
                world_record(&place.world, "data")->number);
        world_settle(&place.world, 5);
        if (CHECK_INT(status_of(&place)->store_count, STORES))
                CHECK(!status_of(&place)->stores[0].kept && !status_of(&place)->stores[1].kept);
        end(&place);
}

static void a_worker_without_a_descriptor_of_each_is_killed(void)
{
        struct place place;
        unsigned kills;

        begin(&place);
        fake_worker_die(fake_worker("data"));
        world_settle(&place.world, 5);
        kills = fake_kills;
        list(&place, 0, "file:a", place.files[0]);
        list(&place, 1, "file:b", -1);
        fake_worker_open(fake_worker("data"), "file:1");
        world_settle(&place.world, 5);
        CHECK(fake_kills > kills);
        end(&place);
}

static void a_list_of_another_length_is_refused(void)
{
        struct place place;
        unsigned kills;

        begin(&place);
        fake_worker_die(fake_worker("data"));
        world_settle(&place.world, 5);
        kills = fake_kills;
        fake_worker_listed(fake_worker("data"), 0, 1, "file:a", fcntl(place.files[0], F_DUPFD_CLOEXEC, 0));
        fake_worker_open(fake_worker("data"), "file:1");
        world_settle(&place.world, 5);
        CHECK(fake_kills > kills);
        end(&place);
}

/* Let the worker find another store in the second place. */
static void refuse_second(struct place *place)
{
        list(place, 0, "file:a", -1);
        list(place, 1, "file:x", -1);
        fake_worker_refuse_at(
                fake_worker("data"), ESTALE, SECOND "/path", "BackingChanged", "It is another store.");
        world_settle(&place->world, 5);
}

static void the_refused_store_is_named(void)
{
        struct place place;

        begin(&place);
        lose_the_stores(&place);
        check_wanted(0, "file:a", false);
        refuse_second(&place);
        CHECK_INT(world_phase(&place.world, "data"), PHASE_FAILED);
        CHECK_INT(status_of(&place)->reason, REASON_BACKING_CHANGED);
        if (CHECK_INT(status_of(&place)->store_count, STORES)) {
                CHECK_STR(status_of(&place)->stores[0].found.lasting, "");
                CHECK_STR(status_of(&place)->stores[1].found.lasting, "file:x");
        }
        end(&place);
}

/* A worker that was started before that does not know of it. */
static void accept_second(struct place *place)
{
        CHECK_INT(device_store_accept_listed(place->world.store, "data", SECOND, "file:x"), 0);
        fake_worker_die(fake_worker("data"));
        world_settle(&place->world, 5);
        CHECK_INT(device_store_request_recover(place->world.store, "data"), 0); /* skips the back-off */
        world_settle(&place->world, 5);
}

/* After a reboot: what was found of one store says nothing of the others. */
static void a_consent_to_one_store_is_none_to_the_others(void)
{
        struct place place;

        begin(&place);
        lose_the_stores(&place);
        refuse_second(&place);
        CHECK_INT(device_store_accept_backing(place.world.store, "data", "file:x"), -ESTALE);
        CHECK_INT(device_store_accept_listed(place.world.store, "data", FIRST, "file:x"), -ESTALE);
        CHECK_INT(device_store_accept_listed(place.world.store, "data", SECOND, "file:y"), -ESTALE);
        accept_second(&place);
        check_wanted(0, "file:a", false);
        check_wanted(1, "file:x", false);
        CHECK(!fake_worker("data")->wanted[1].was_served);
        /* A worker that does not compare, and serves a wrong first one. */
        list(&place, 0, "file:z", place.other);
        list(&place, 1, "file:x", place.files[1]);
        fake_worker_open(fake_worker("data"), "file:1");
        world_settle(&place.world, 5);
        fake_worker_die(fake_worker("data"));
        world_settle(&place.world, 5);
        CHECK_INT(status_of(&place)->reason, REASON_BACKING_CHANGED);
        if (CHECK_INT(status_of(&place)->store_count, STORES))
                CHECK_STR(status_of(&place)->stores[0].found.lasting, "file:z");
        end(&place);
}

/* The identity of the one was taken in this boot, that of the other in an earlier one. */
static void each_identity_has_its_own_boot(void)
{
        static const struct backing_identity identities[STORES] = {
                {.basis = BACKING_FILE_HANDLE, .boot = "a", .lasting = "file:a"},
                {.basis = BACKING_FILE_HANDLE, .boot = "b", .lasting = "file:b"}
        };
        struct place place;
        const char *boot;

        begin(&place);
        CHECK_INT(device_store_set_listed(place.world.store, "data", identities, STORES,
                          "00000000-0000-0000-0000-000000000000"),
                0);
        lose_the_stores(&place);
        CHECK(!fake_worker("data")->wanted[0].in_this_boot);
        refuse_second(&place);
        accept_second(&place);
        (void)device_record_backing(world_record(&place.world, "data"), 0, &boot);
        CHECK_STR(boot, "00000000-0000-0000-0000-000000000000");
        CHECK(!fake_worker("data")->wanted[0].in_this_boot);
        CHECK(fake_worker("data")->wanted[1].in_this_boot);
        end(&place);
}

static void a_change_of_one_path_drops_that_identity_alone(void)
{
        struct place place;

        begin(&place);
        put(&place.world, "/a", "/c");
        CHECK_STR(device_record_backing(world_record(&place.world, "data"), 0, NULL)->lasting, "file:a");
        CHECK(backing_identity_is_empty(device_record_backing(world_record(&place.world, "data"), 1, NULL)));
        end(&place);
}

static void stores_do_not_change_their_places(void)
{
        struct place place;

        begin(&place);
        CHECK_INT(try_put(&place.world, "/b", "/a"), -ETXTBSY);
        CHECK_INT(try_put(&place.world, "/c", "/a"), -ETXTBSY);
        CHECK_STR(device_record_backing(world_record(&place.world, "data"), 0, NULL)->lasting, "file:a");
        end(&place);
}

/* The other part stays where it is. */
static void one_of_two_parts_of_a_store_goes(void)
{
        struct place place;

        begin(&place);
        CHECK_INT(try_put(&place.world, "/a", "/a"), 0);
        CHECK_INT(try_put(&place.world, "/a", "/c"), 0);
        CHECK_INT(try_put(&place.world, "/c", "/a"), -ETXTBSY);
        CHECK_STR(device_record_backing(world_record(&place.world, "data"), 0, NULL)->lasting, "file:a");
        CHECK(backing_identity_is_empty(device_record_backing(world_record(&place.world, "data"), 1, NULL)));
        end(&place);
}

/* Its message would be without the pointer and the command. */
static void the_note_has_the_command(void)
{
        struct place place;

        begin(&place);
        lose_the_stores(&place);
        refuse_second(&place);
        CHECK(strstr(status_of(&place)->message,
                "ublkctl recover data --store " SECOND " --accept-backing 'file:x'"));
        end(&place);
}

/* Let the first store be in use: the other target has the claim of the same block device. */
static void refuse_first_as_claimed(struct world *world)
{
        struct fake_worker *worker = fake_worker("data");

        for (unsigned i = 0; i < STORES; i++) {
                fake_worker_listed(worker, i, STORES, "wwid:x", -1);
                worker->list[i].identity.is_disk = true;
                worker->list[i].major = 8;
                worker->list[i].claimed = i == 1;
        }
        fake_worker_refuse_at(worker, EBUSY, FIRST "/path", "BackingFileBusy", "It is in use.");
        world_settle(world, 5);
}

/* A mount of the new one would be taken for the other target, and both would write. */
static void a_new_path_does_not_share_the_claim_of_the_old_one(void)
{
        struct world world;

        world_new(&world);
        put(&world, "/a", "/b");
        world_settle(&world, 0);
        CHECK(!fake_worker("data")->wanted[0].is_shared);
        refuse_first_as_claimed(&world);
        CHECK(fake_worker("data")->wanted[0].is_shared);
        put(&world, "/c", "/b");
        world_settle(&world, 5);
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 5);
        CHECK(!fake_worker("data")->wanted[0].is_shared);
        world_free(&world);
}

/* The names of two stores were exchanged. Each is the wrong one, and none may be accepted. */
static void an_exchange_cannot_be_accepted(void)
{
        struct place place;

        begin(&place);
        lose_the_stores(&place);
        list(&place, 0, "file:b", -1);
        list(&place, 1, "file:a", -1);
        fake_worker_refuse_at(
                fake_worker("data"), ESTALE, SECOND "/path", "BackingChanged", "It is another store.");
        world_settle(&place.world, 5);
        CHECK_INT(status_of(&place)->reason, REASON_BACKING_CHANGED);
        CHECK(!strstr(status_of(&place)->message, "accept-backing"));
        CHECK_INT(device_store_accept_listed(place.world.store, "data", SECOND, "file:a"), -EXDEV);
        check_wanted(1, "file:b", false);
        end(&place);
}

/* Whatever it says of them would be compared with nothing. Also where the file of the stores was removed on the host:
 * then the spec counts. */
static void an_adopted_worker_with_another_number_of_stores_is_killed(void)
{
        static const unsigned counts[] = {0, 1, 3}; /* 0: no list */

        for (unsigned i = 0; i < 2 * ARRAY_SIZE(counts); i++) {
                unsigned count = counts[i / 2], kills;
                struct place place;

                begin(&place);
                if (i % 2)
                        CHECK_INT(runtime_dir_remove(place.world.dir, world_record(&place.world, "data")->uid,
                                          RUNTIME_BACKING),
                                0);
                world_restart_with_workers(&place.world);
                kills = fake_kills;
                if (count == 0)
                        fake_worker_store(
                                fake_worker("data"), "file:a", fcntl(place.files[0], F_DUPFD_CLOEXEC, 0));
                for (unsigned number = 0; number < count; number++)
                        fake_worker_listed(fake_worker("data"), number, count,
                                number == 0 ? "file:a" : "file:b",
                                fcntl(place.files[number % STORES], F_DUPFD_CLOEXEC, 0));
                fake_worker_greet(fake_worker("data"), world_record(&place.world, "data")->epoch,
                        world_record(&place.world, "data")->number);
                world_settle(&place.world, 5);
                CHECK_INT(fake_kills, kills + 1);
                CHECK(!status_of(&place)->backing.kept);
                end(&place);
        }
}

/* ublkd is short of descriptors: the worker serves, and nothing is taken. */
static void an_adopted_worker_without_descriptors_goes_on(void)
{
        struct place place;
        unsigned kills;

        begin(&place);
        world_restart_with_workers(&place.world);
        kills = fake_kills;
        list(&place, 0, "file:a", place.files[0]);
        list(&place, 1, "file:b", place.files[1]);
        fake_worker("data")->loses_descriptors = true;
        fake_worker_greet(fake_worker("data"), world_record(&place.world, "data")->epoch,
                world_record(&place.world, "data")->number);
        world_settle(&place.world, 5);
        CHECK_INT(fake_kills, kills);
        CHECK_INT(world_phase(&place.world, "data"), PHASE_LIVE);
        CHECK(!status_of(&place)->backing.kept);
        end(&place);
}

/* A worker would write the bytes of one store to the other. What is at none of the numbers that are known may be its store, which
 * was away. */
static void a_descriptor_in_the_place_of_another_is_found(void)
{
        static const struct {
                int files[STORES]; /* -1: another file; -2: none is held */
                bool known;        /* the second one */
                int misplaced;
        } rows[] = {
                {{0, 1},   true,  -1},
                {{1, 0},   true,  0 },
                {{0, 0},   true,  1 },
                {{1, -2},  true,  0 },
                {{-1, 1},  true,  -1},
                {{-2, -1}, true,  -1},
                {{1, 0},   false, -1},
        };
        int files[STORES + 1] = {memfd_create("a", MFD_CLOEXEC), memfd_create("b", MFD_CLOEXEC),
                memfd_create("c", MFD_CLOEXEC)};

        for (size_t row = 0; row < ARRAY_SIZE(rows); row++) {
                struct kept_store stores[STORES] = {};
                struct managed_device device = {
                        .backing = {.stores = stores, .count = STORES, .is_list = true}
                };

                for (unsigned i = 0; i < STORES; i++) {
                        int file = rows[row].files[i];
                        struct stat stat;

                        CHECK_INT(fstat(files[i], &stat), 0);
                        stores[i].at = (struct worker_store){.major = major(stat.st_dev),
                                .minor = minor(stat.st_dev),
                                .inode = stat.st_ino};
                        stores[i].known = i == 0 || rows[row].known;
                        stores[i].held = file != -2;
                        stores[i].fd = file == -1 ? files[STORES] : stores[i].held ? files[file] : -1;
                }
                if (!CHECK_INT(backing_wish_misplaced(&device), rows[row].misplaced))
                        fprintf(stderr, "in row %zu\n", row);
        }
        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                close_fd(files[i]);
}

/* The names of the descriptors at the service manager were wrong. */
static void no_worker_gets_exchanged_descriptors(void)
{
        struct managed_device *device;
        struct place place;
        int fd;

        begin(&place);
        device = reconciler_find(place.world.reconciler, "data");
        if (CHECK(device)) {
                fd = device->backing.stores[0].fd;
                device->backing.stores[0].fd = device->backing.stores[1].fd;
                device->backing.stores[1].fd = fd;
                fake_worker_die(fake_worker("data"));
                world_settle(&place.world, 5);
                CHECK(!fake_worker("data"));
                CHECK_INT(status_of(&place)->reason, REASON_BACKING_CHANGED);
        }
        end(&place);
}

/* It may be under an attacker's control, and its sentence may have a command. */
static void a_worker_that_has_served_refuses_no_store(void)
{
        static const char *const pointers[] = {FIRST "/path", "/target/path", ""};

        for (size_t i = 0; i < ARRAY_SIZE(pointers); i++) {
                struct place place;

                begin(&place);
                fake_worker_refuse_at(
                        fake_worker("data"), ESTALE, pointers[i], "BackingChanged", "It is another store.");
                world_settle(&place.world, 5);
                CHECK(world_phase(&place.world, "data") != PHASE_FAILED);
                CHECK(backing_identity_is_empty(
                        &reconciler_find(place.world.reconciler, "data")->backing.stores[0].refused));
                end(&place);
        }
}

int main(void)
{
        a_worker_that_has_served_refuses_no_store();
        a_descriptor_in_the_place_of_another_is_found();
        no_worker_gets_exchanged_descriptors();
        the_note_has_the_command();
        an_exchange_cannot_be_accepted();
        a_new_path_does_not_share_the_claim_of_the_old_one();
        an_adopted_worker_without_descriptors_goes_on();
        an_adopted_worker_with_another_number_of_stores_is_killed();
        the_next_worker_gets_each_store();
        an_adopted_worker_gives_each_store();
        an_adopted_worker_cannot_exchange_its_stores();
        a_worker_without_a_descriptor_of_each_is_killed();
        a_list_of_another_length_is_refused();
        the_refused_store_is_named();
        a_consent_to_one_store_is_none_to_the_others();
        each_identity_has_its_own_boot();
        a_change_of_one_path_drops_that_identity_alone();
        stores_do_not_change_their_places();
        one_of_two_parts_of_a_store_goes();
        return check_report();
}
