/* SPDX-License-Identifier: MIT */
/* state_look: the file system of the state directory may not answer, and the loop goes on. */
#include "ublkd/host/state_look.h"

#include "tests/unit/check.h"

#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { PATIENCE_USEC = 200 * 1000, DEADLINE_USEC = 20 * 1000 * 1000 };

struct world {
        sd_event *event;
        struct state_look *look;
        struct state_room room;
        unsigned done, turns;
};

static bool hangs;

int __wrap_statvfs(const char *path, struct statvfs *ret);
int __real_statvfs(const char *path, struct statvfs *ret);

/* As on a server that is gone. */
int __wrap_statvfs(const char *path, struct statvfs *ret)
{
        while (hangs)
                pause();
        return __real_statvfs(path, ret);
}

static void on_done(void *userdata, const struct state_room *room)
{
        struct world *world = userdata;

        world->room = *room;
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

static void look(struct world *world)
{
        unsigned before = world->done;

        CHECK(state_look_begin(world->look));
        CHECK(state_look_begin(world->look)); /* it is under way */
        while (world->done == before)
                if (!CHECK(sd_event_run(world->event, UINT64_MAX) >= 0))
                        abort();
        CHECK_INT(world->done, before + 1);
}

int main(void)
{
        sd_event_source *turn = NULL, *deadline = NULL;
        struct world world = {};

        CHECK_INT(sd_event_new(&world.event), 0);
        CHECK_INT(sd_event_add_time_relative(world.event, &turn, CLOCK_MONOTONIC, 0, 1, on_turn, &world), 0);
        CHECK_INT(sd_event_add_time_relative(
                          world.event, &deadline, CLOCK_MONOTONIC, DEADLINE_USEC, 1, on_deadline, NULL),
                0);
        CHECK_INT(state_look_new(
                          &(struct state_look_config){
                                  .event = world.event,
                                  .directory = "/tmp",
                                  .patience_usec = PATIENCE_USEC,
                                  .done = on_done,
                                  .userdata = &world,
                          },
                          &world.look),
                0);
        hangs = true;
        look(&world);
        CHECK(!world.room.answered);
        CHECK(world.turns >= 2);
        CHECK(!state_look_begin(world.look)); /* that was a moment ago */
        while (world.turns < 100)
                CHECK(sd_event_run(world.event, UINT64_MAX) >= 0);
        hangs = false;
        look(&world);
        CHECK(world.room.answered && world.room.limited && world.room.bytes > 0);
        state_look_free(world.look);
        sd_event_source_disable_unref(turn);
        sd_event_source_disable_unref(deadline);
        sd_event_unref(world.event);
        return check_report();
}
