/* SPDX-License-Identifier: MIT */
/* In place of sd-event and the clocks: timers and turns in virtual time, and the close of /dev/ublkcN. Other kinds
 * of sources are not used by the reconciler. */
#include "sim.h"

#include "ublkd/driver/char_device.h"

#include <errno.h>
#include <systemd/sd-id128.h>

#define REALTIME_AT_START (UINT64_C(1800000000) * SECOND)

/* ---- clocks, and what else of the machine would differ from run to run ---- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
        uint64_t now = sim->now + (clock == CLOCK_REALTIME ? REALTIME_AT_START : 0);

        *ret = (struct timespec){.tv_sec = (time_t)(now / SECOND), .tv_nsec = (long)(now % SECOND * 1000)};
        return 0;
}

int __wrap_sd_id128_get_boot(sd_id128_t *ret);

int __wrap_sd_id128_get_boot(sd_id128_t *ret)
{
        *ret = (sd_id128_t){
                .qwords = {1, sim->boot}
        };
        return 0;
}

int __wrap_sd_id128_randomize(sd_id128_t *ret);

int __wrap_sd_id128_randomize(sd_id128_t *ret)
{
        *ret = (sd_id128_t){
                .qwords = {UINT64_C(0x123456789abcdef0) + ++sim->uids, 2}
        };
        return 0;
}

/* ---- sources ---- */

static bool is_on(const struct sd_event_source *source)
{
        return source->used && source->on;
}

/* A turn comes soon, and late where the loop is busy; a timer when it is due. */
static uint64_t due(struct world *world, const struct sd_event_source *source)
{
        if (source->deferred)
                return world->now
                       + (world_bad_luck(world) ? world_random(world, 300 * MS)
                                                : world_between(world, 1, 20));
        return source->time > world->now ? source->time : world->now + 1;
}

static void arm(struct sd_event_source *source)
{
        struct world *world = sim;

        source->arming = ++world->armings;
        if (is_on(source) && source->time != UINT64_MAX)
                world_at(world, due(world, source), EVENT_SOURCE, (int)(source - world->ublkd.sources), 0,
                        source->arming);
}

void seam_event_fires(struct world *world, const struct event *event)
{
        struct sd_event_source *source = &world->ublkd.sources[event->a];

        if (!ublkd_acts(world) || !is_on(source) || source->arming != event->c)
                return;
        if (source->once || !source->deferred)
                source->on = false;
        if (source->on_closed)
                (void)source->on_closed(source, NULL, source->userdata);
        else if (source->deferred)
                (void)source->on_turn(source, source->userdata);
        else
                (void)source->on_time(source, source->time, source->userdata);
        if (is_on(source) && source->arming == event->c) /* its handler has not armed it again */
                arm(source);
}

static int add(const struct sd_event_source *like, sd_event_source **ret)
{
        struct ublkd *ublkd = &sim->ublkd;

        for (int i = 0; i < SOURCES; i++)
                if (!ublkd->sources[i].used) {
                        ublkd->sources[i] = *like;
                        arm(&ublkd->sources[i]);
                        *ret = &ublkd->sources[i];
                        return 0;
                }
        world_break(sim, "event sources pile up");
        return -ENOMEM;
}

int sd_event_add_time(sd_event *event, sd_event_source **ret, clockid_t clock, uint64_t usec,
        uint64_t accuracy, sd_event_time_handler_t callback, void *userdata)
{
        (void)event, (void)clock, (void)accuracy;
        return add(&(const struct sd_event_source){.used = true,
                           .on = true,
                           .once = true,
                           .time = usec,
                           .on_time = callback,
                           .userdata = userdata},
                ret);
}

int sd_event_add_time_relative(sd_event *event, sd_event_source **ret, clockid_t clock, uint64_t usec,
        uint64_t accuracy, sd_event_time_handler_t callback, void *userdata)
{
        return sd_event_add_time(event, ret, clock, sim->now + usec, accuracy, callback, userdata);
}

int sd_event_add_defer(sd_event *event, sd_event_source **ret, sd_event_handler_t callback, void *userdata)
{
        (void)event;
        return add(&(const struct sd_event_source){.used = true,
                           .on = true,
                           .once = true,
                           .deferred = true,
                           .on_turn = callback,
                           .userdata = userdata},
                ret);
}

int char_device_watch(sd_event *event, int number, sd_event_inotify_handler_t on_closed, void *userdata,
        sd_event_source **ret)
{
        (void)event;
        return add(&(const struct sd_event_source){.used = true,
                           .on = true,
                           .once = true,
                           .time = UINT64_MAX,
                           .on_closed = on_closed,
                           .watched = number,
                           .userdata = userdata},
                ret);
}

void seam_event_closed(struct world *world, int number)
{
        for (int i = 0; i < SOURCES; i++) {
                struct sd_event_source *source = &world->ublkd.sources[i];

                if (source->on_closed && source->watched == number && is_on(source))
                        world_at(world, world->now + world_between(world, 0, 300), EVENT_SOURCE, i, 0,
                                source->arming);
        }
}

int sd_event_source_set_time(sd_event_source *source, uint64_t usec)
{
        source->time = usec;
        arm(source);
        return 0;
}

/* What is on already comes when it would have come. */
int sd_event_source_set_enabled(sd_event_source *source, int enabled)
{
        bool was_on = source->on;

        source->on = enabled != SD_EVENT_OFF;
        source->once = enabled == SD_EVENT_ONESHOT;
        if (source->on != was_on)
                arm(source);
        return 0;
}

/* Events are handled in the order in which they come. */
int sd_event_source_set_priority(sd_event_source *source, int64_t priority)
{
        (void)source, (void)priority;
        return 0;
}

int sd_event_source_set_ratelimit(sd_event_source *source, uint64_t interval, unsigned burst)
{
        (void)source, (void)interval, (void)burst;
        return 0;
}

sd_event *sd_event_ref(sd_event *event)
{
        return event;
}

sd_event *sd_event_unref(sd_event *event)
{
        (void)event;
        return NULL;
}

sd_event_source *sd_event_source_disable_unref(sd_event_source *source)
{
        if (source)
                *source = (struct sd_event_source){};
        return NULL;
}
