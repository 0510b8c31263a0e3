/* SPDX-License-Identifier: MIT */
/* The time that work for clients that may not change devices may take: after a piece of it, the next one waits for four times
 * as long (own_time.h). Short pieces add up, so they have a fifth of the time of the loop, or up to a half where most of
 * it are waits for a CPU.
 *
 * A piece that a client gets in its turn has all wait: turns come one by one, so one pause is over before the next begins. The
 * head of a request is looked at as soon as it is there, and a client can send many without a wait for answers. So at first the
 * account of the client alone waits for that; all do once the request has its turn. Private to api/. */
#pragma once

#include "api/http/own_time.h"

enum {
        READERS_REST_ACCOUNTS = 64
}; /* that have to wait; of more, those wait that have to wait for longest */

struct readers_rest {
        int clock; /* own_time.h */
        /* Until when; CLOCK_MONOTONIC, microseconds */
        uint64_t all;
        struct {
                uint64_t until;
                uint32_t account;
        } own[READERS_REST_ACCOUNTS];
};

void readers_rest_open(struct readers_rest *rest);
void readers_rest_close(struct readers_rest *rest);

/* Return the moment at which a piece of work begins. */
struct own_time readers_rest_begin(const struct readers_rest *rest);
/* Return the pause after a piece of work that began then and ends now, in microseconds. */
uint64_t readers_rest_pause(const struct readers_rest *rest, struct own_time began);

/* Have all, or an account, wait for so much longer. now: CLOCK_MONOTONIC, microseconds. */
void readers_rest_add(struct readers_rest *rest, uint64_t pause, uint64_t now);
void readers_rest_add_to(struct readers_rest *rest, uint32_t account, uint64_t pause, uint64_t now);

/* Return how long all, or an account, have to wait, in microseconds; 0: the next piece may begin. */
uint64_t readers_rest_left(const struct readers_rest *rest, uint64_t now);
uint64_t readers_rest_left_of(const struct readers_rest *rest, uint32_t account, uint64_t now);
