/* SPDX-License-Identifier: MIT */
/* Ask polkit, over D-Bus, whether the process that connected to a Unix socket may change devices.
 *
 * The room touches the system bus, the client's socket (which process connected), and nothing of
 * ublkd. Nothing blocks: all runs on the loop. There is a connection to the bus only while a question is under way, so
 * ublkd needs no bus otherwise, and a bus that was restarted is found by the next question.
 *
 * A question holds a place until polkit has answered or its time is over, also if it was withdrawn: so a client that
 * asks and leaves, again and again, cannot pile up messages in the bus or in polkit. */
#pragma once

#include "ublkd/authority/authority_answer.h"

#include <stdbool.h>
#include <systemd/sd-event.h>

#define AUTHORITY_ACTION "io.ublkd.manage"

/* Seconds until a question counts as not answered; a user who may be asked for a password needs more. polkit answers a
 * withdrawn one at once, but it can lose it when the agent ends at the same time: its user must not wait for that. */
enum { AUTHORITY_SECONDS = 30, AUTHORITY_INTERACTIVE_SECONDS = 120, AUTHORITY_WITHDRAWN_SECONDS = 10 };

/* Questions under way. Of one user: one. */
enum { AUTHORITY_QUESTIONS_MAX = 16 };

struct authority;

/* Create it, without a connection to the bus. Return 0 or -errno. */
int authority_new(sd_event *event, struct authority **ret);

/* Free it, and drop all questions without an answer. NULL is fine. Return NULL. */
struct authority *authority_free(struct authority *authority);

/* Ask about the process at the other end of `client`, a connected Unix socket. interactive: polkit may ask the user for
 * a password. `then` is called once, from the loop, and never from inside this function; the question is gone then.
 * Return 0 and the question. -EBUSY: a question of the same user is under way; -EUSERS: too many are; -ESRCH: the
 * process has ended; other -errno: the kernel cannot name it (before Linux 6.5), or the bus cannot be asked. */
int authority_ask(struct authority *authority, int client, bool interactive,
        void (*then)(void *userdata, enum authority_answer answer), void *userdata,
        struct authority_question **ret);

/* Withdraw a question: `then` is not called any more, and polkit is asked to end the dialog. The question keeps its place
 * until polkit has answered, for AUTHORITY_WITHDRAWN_SECONDS at most. Return NULL. */
struct authority_question *authority_withdraw(struct authority_question *question);
