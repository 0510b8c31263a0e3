/* SPDX-License-Identifier: MIT */
/* Up to which revision the events of single accounts were dropped. */
#include "ublkd/store/event_floors.h"

static struct event_floor *find(struct event_floors *floors, const char *account)
{
        for (size_t i = 0; i < floors->count; i++)
                if (strcmp(floors->of[i].account, account) == 0)
                        return &floors->of[i];
        return NULL;
}

uint64_t event_floors_get(const struct event_floors *floors, const char *account)
{
        for (size_t i = 0; i < floors->count; i++)
                if (strcmp(floors->of[i].account, account) == 0)
                        return floors->of[i].revision;
        return 0;
}

uint64_t event_floors_highest(const struct event_floors *floors, bool (*counts)(const char *account))
{
        uint64_t highest = 0;

        for (size_t i = 0; i < floors->count; i++)
                if ((!counts || counts(floors->of[i].account)) && floors->of[i].revision > highest)
                        highest = floors->of[i].revision;
        return highest;
}

static struct event_floor *find_lowest(struct event_floors *floors)
{
        struct event_floor *lowest = &floors->of[0];

        for (size_t i = 1; i < floors->count; i++)
                if (floors->of[i].revision < lowest->revision)
                        lowest = &floors->of[i];
        return lowest;
}

uint64_t event_floors_raise(struct event_floors *floors, const char *account, uint64_t revision)
{
        struct event_floor *floor = find(floors, account);
        uint64_t given_up = 0;

        if (!floor && floors->count == EVENT_FLOORS_MAX) {
                floor = find_lowest(floors);
                given_up = floor->revision;
        } else if (!floor) {
                floor = &floors->of[floors->count++];
        }
        snprintf(floor->account, sizeof(floor->account), "%s", account);
        floor->revision = revision;
        return given_up;
}

void event_floors_pass(struct event_floors *floors, uint64_t compacted)
{
        size_t kept = 0;

        for (size_t i = 0; i < floors->count; i++)
                if (floors->of[i].revision > compacted)
                        floors->of[kept++] = floors->of[i];
        floors->count = kept;
}
