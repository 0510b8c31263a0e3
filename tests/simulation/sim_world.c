/* SPDX-License-Identifier: MIT */
/* Random numbers, the queue of events, the trace. */
#include "sim.h"

#include <stdio.h>
#include <string.h>

struct world *sim;

void world_init(struct world *world, uint64_t seed, plan_function decide, bool trace)
{
        /* clearing all of the large arrays for every schedule would take longer than the schedule */
        memset(world->processes, 0, sizeof(world->processes[0]) * (size_t)world->process_count);
        memset(world->commands, 0, sizeof(world->commands));
        world->process_count = 0;
        world->descriptor_count = 0;
        world->event_count = world->event_order = 0;
        world->socket_owner = NO_PROCESS;
        memset(&world->disks, 0, sizeof(*world) - offsetof(struct world, disks));
        world->seed = seed;
        world->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
        world->now = 1;
        world->trace = trace;
        world->plan = decide;
        world->broken = NULL;
        sim = world;
}

/* splitmix64 */
static uint64_t next_random(struct world *world)
{
        uint64_t z = world->random += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

uint64_t world_random(struct world *world, uint64_t limit)
{
        return next_random(world) % limit;
}

uint64_t world_between(struct world *world, uint64_t low, uint64_t high)
{
        return low + world_random(world, high - low + 1);
}

bool world_chance(struct world *world, unsigned per_mille)
{
        return per_mille > 0 && world_random(world, 1000) < per_mille;
}

bool world_bad_luck(struct world *world)
{
        return !world->calm && world_chance(world, world->bad_luck);
}

static bool is_earlier(const struct event *one, const struct event *other)
{
        return one->time != other->time ? one->time < other->time : one->order < other->order;
}

void world_at(struct world *world, uint64_t time, enum event_kind kind, int a, int b, unsigned c)
{
        unsigned i = world->event_count++;
        struct event event = {time, world->event_order++, kind, a, b, c};

        if (i >= EVENTS) {
                world->event_count = EVENTS;
                world_break(world, "events pile up");
                return;
        }
        while (i > 0 && is_earlier(&event, &world->events[(i - 1) / 2])) {
                world->events[i] = world->events[(i - 1) / 2];
                i = (i - 1) / 2;
        }
        world->events[i] = event;
}

bool world_next(struct world *world, struct event *ret)
{
        struct event last;
        unsigned i = 0, child;

        if (world->event_count == 0)
                return false;
        *ret = world->events[0];
        last = world->events[--world->event_count];
        while ((child = 2 * i + 1) < world->event_count) {
                if (child + 1 < world->event_count
                        && is_earlier(&world->events[child + 1], &world->events[child]))
                        child++;
                if (!is_earlier(&world->events[child], &last))
                        break;
                world->events[i] = world->events[child];
                i = child;
        }
        world->events[i] = last;
        world->now = ret->time;
        return true;
}

void world_break(struct world *world, const char *rule)
{
        if (!world->broken) {
                world->broken = rule;
                TRACE(world, "BROKEN: %s", rule);
        }
}

void world_trace(struct world *world, const char *format, ...)
{
        va_list arguments;

        printf("%12.3f ms  ", (double)world->now / 1000);
        va_start(arguments, format);
        vprintf(format, arguments);
        va_end(arguments);
        putchar('\n');
}
