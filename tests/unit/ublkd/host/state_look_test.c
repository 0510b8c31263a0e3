/* SPDX-License-Identifier: MIT */
/* state_look: the file system of the state directory may not answer, and the loop goes on. */
#include "ublkd/host/state_look.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/store/store_faulty.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* A busy machine may let the process of a look wait for seconds: a look that is to answer has a long patience. */
enum { HASTY_USEC = 200 * 1000, PATIENT_USEC = 60 * 1000 * 1000, DEADLINE_USEC = 300 * 1000 * 1000 };

struct world {
        sd_event *event;
        struct state_look *hasty, *patient;
        struct state_seen seen;
        unsigned done, turns;
};

static bool hangs, dies;

int __wrap_statvfs(const char *path, struct statvfs *ret);
int __real_statvfs(const char *path, struct statvfs *ret);

/* As on a server that is gone. */
int __wrap_statvfs(const char *path, struct statvfs *ret)
{
        while (hangs)
                pause();
        if (dies)
                _exit(EXIT_FAILURE);
        return __real_statvfs(path, ret);
}

static void on_done(void *userdata, const struct state_seen *seen)
{
        struct world *world = userdata;

        world->seen = *seen;
        world->done++;
}

static int on_turn(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        ((struct world *)userdata)->turns++;
        CHECK(sd_event_source_set_time_relative(source, 10 * 1000) >= 0);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_deadline(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata _unused_)
{
        fputs("the look was never done\n", stderr);
        abort();
}

/* The last look was long enough ago for another one. */
static void wait_a_moment(struct world *world)
{
        unsigned before = world->turns;

        while (world->turns < before + 20)
                CHECK(sd_event_run(world->event, UINT64_MAX) >= 0);
}

static void do_look(struct world *world, struct state_look *look)
{
        unsigned before = world->done;

        wait_a_moment(world);
        CHECK_INT(state_look_begin(look), 1);
        CHECK_INT(state_look_begin(look), 1); /* it is under way */
        while (world->done == before)
                if (!CHECK(sd_event_run(world->event, UINT64_MAX) >= 0))
                        abort();
        CHECK_INT(world->done, before + 1);
}

static void test_the_database(struct world *world, struct store_faulty *disk)
{
        static const struct {
                int error;
                enum database_seen seen;
        } rows[] = {
                {0,        DATABASE_THERE   },
                {-ENOLINK, DATABASE_GONE    },
                {-EIO,     DATABASE_NOT_SEEN}
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                disk->check_error = rows[i].error;
                do_look(world, world->patient);
                CHECK_INT(world->seen.database, rows[i].seen);
                CHECK_INT(world->seen.room.answer, STATE_ANSWERS);
        }
        disk->check_error = 0;
        CHECK_INT(disk->checks, 0); /* in this process */
}

/* The metrics show them. */
static void test_the_sizes(struct world *world, const char *directory)
{
        char path[128];
        FILE *file;

        CHECK(!world->seen.sizes[DATABASE_FILE_MAIN].known);
        snprintf(path, sizeof(path), "%s/ublkd.db", directory);
        file = fopen(path, "we");
        CHECK(file && fputs("twelve bytes", file) >= 0 && fclose(file) == 0);
        do_look(world, world->patient);
        CHECK(world->seen.sizes[DATABASE_FILE_MAIN].known);
        CHECK_INT(world->seen.sizes[DATABASE_FILE_MAIN].bytes, 12);
        CHECK(!world->seen.sizes[DATABASE_FILE_WAL].known);
        hangs = true;
        do_look(world, world->hasty);
        hangs = false;
        CHECK(!world->seen.sizes[DATABASE_FILE_MAIN].known);
        CHECK_INT(unlink(path), 0);
}

/* The look hangs, and nothing is known of the file system. */
static void test_a_look_that_fails(struct world *world)
{
        struct rlimit limit, none = {};

        dies = true;
        do_look(world, world->patient);
        dies = false;
        CHECK_INT(world->seen.room.answer, STATE_NOT_SEEN);
        CHECK_INT(world->seen.database, DATABASE_NOT_SEEN);
        wait_a_moment(world);
        CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
        none.rlim_max = limit.rlim_max;
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &none), 0);
        CHECK_INT(state_look_begin(world->patient), -EMFILE);
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
        do_look(world, world->patient);
        CHECK_INT(world->seen.room.answer, STATE_ANSWERS);
}

static struct state_look *new_look(
        struct world *world, const char *directory, const struct device_store *store, uint64_t patience_usec)
{
        struct state_look_config config = {
                .event = world->event,
                .directory = directory,
                .store = store,
                .patience_usec = patience_usec,
                .done = on_done,
                .userdata = world,
        };
        struct state_look *look = NULL;

        CHECK_INT(state_look_new(&config, &look), 0);
        return look;
}

int main(void)
{
        struct store_faulty disk = {};
        struct device_store *store = NULL;
        sd_event_source *turn = NULL, *deadline = NULL;
        struct world world = {};
        char directory[] = "/tmp/state_look_test.XXXXXX";

        CHECK(mkdtemp(directory));
        CHECK_INT(store_memory_open(&disk.real, &disk.real_context), 0);
        CHECK_INT(device_store_new(&store_faulty_backend, &disk, &store), 0);
        CHECK_INT(sd_event_new(&world.event), 0);
        CHECK_INT(sd_event_add_time_relative(world.event, &turn, CLOCK_MONOTONIC, 0, 1, on_turn, &world), 0);
        CHECK_INT(sd_event_add_time_relative(
                          world.event, &deadline, CLOCK_MONOTONIC, DEADLINE_USEC, 1, on_deadline, NULL),
                0);
        world.hasty = new_look(&world, directory, store, HASTY_USEC);
        world.patient = new_look(&world, directory, store, PATIENT_USEC);
        hangs = true;
        do_look(&world, world.hasty);
        CHECK_INT(world.seen.room.answer, STATE_HANGS);
        CHECK_INT(world.seen.database, DATABASE_NOT_SEEN);
        CHECK(world.turns > 20);
        CHECK_INT(state_look_begin(world.hasty), 0); /* that was a moment ago */
        hangs = false;
        do_look(&world, world.patient);
        CHECK(world.seen.room.answer == STATE_ANSWERS && world.seen.room.limited
                && world.seen.room.bytes > 0);
        test_the_sizes(&world, directory);
        test_the_database(&world, &disk);
        test_a_look_that_fails(&world);
        state_look_free(world.hasty);
        state_look_free(world.patient);
        CHECK_INT(rmdir(directory), 0);
        sd_event_source_disable_unref(turn);
        sd_event_source_disable_unref(deadline);
        sd_event_unref(world.event);
        device_store_free(store);
        return check_report();
}
