/* SPDX-License-Identifier: MIT */
/* The time that work for clients that may not change devices may take. */
#include "api/http/readers_rest.h"

#include "ublkd/base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

enum {
        SHORT_USEC = 1000, /* not worth a pause yet */
        REST_MAX_USEC = 10 * 1000 * 1000,
};

void readers_rest_open(struct readers_rest *rest)
{
        *rest = (struct readers_rest){.clock = own_time_open()};
}

void readers_rest_close(struct readers_rest *rest)
{
        rest->clock = close_fd(rest->clock);
}

struct own_time readers_rest_begin(const struct readers_rest *rest)
{
        return own_time_now(rest->clock);
}

uint64_t readers_rest_pause(const struct readers_rest *rest, struct own_time began)
{
        struct own_time now = own_time_now(rest->clock);

        return own_time_pause(&began, &now);
}

static void prolong(uint64_t *until, uint64_t pause, uint64_t now)
{
        uint64_t wanted = (*until > now ? *until : now) + pause, limit = now + REST_MAX_USEC;

        *until = wanted < limit ? wanted : limit;
}

static uint64_t left(uint64_t until, uint64_t now)
{
        return until > now + SHORT_USEC ? until - now : 0;
}

void readers_rest_add(struct readers_rest *rest, uint64_t pause, uint64_t now)
{
        prolong(&rest->all, pause, now);
}

void readers_rest_add_to(struct readers_rest *rest, uint32_t account, uint64_t pause, uint64_t now)
{
        size_t place = 0; /* else of the one that has to wait for the shortest time */

        for (size_t i = 0; i < ARRAY_SIZE(rest->own); i++) {
                if (rest->own[i].until > 0 && rest->own[i].account == account) {
                        prolong(&rest->own[i].until, pause, now);
                        return;
                }
                if (rest->own[i].until < rest->own[place].until)
                        place = i;
        }
        if (now + pause <= rest->own[place].until)
                return;
        rest->own[place].account = account;
        rest->own[place].until = 0;
        prolong(&rest->own[place].until, pause, now);
}

uint64_t readers_rest_left(const struct readers_rest *rest, uint64_t now)
{
        return left(rest->all, now);
}

uint64_t readers_rest_left_of(const struct readers_rest *rest, uint32_t account, uint64_t now)
{
        for (size_t i = 0; i < ARRAY_SIZE(rest->own); i++)
                if (rest->own[i].until > 0 && rest->own[i].account == account)
                        return left(rest->own[i].until, now);
        return 0;
}
