/* SPDX-License-Identifier: MIT */
/* PURE: which messages the supervisor accepts from a worker, when, and how often. A worker under an attacker's
 * control may send anything at any time; a message that it may not send ends it.
 *
 * The rules hold for one connection: a worker reports everything again to the next supervisor. They are as wide as
 * the workers of every version need. */
#pragma once

#include "ublkd/proto/worker_msg.h"

/* The messages of one connection. Zero-initialise. */
struct worker_messages {
        unsigned seen;                        /* a set of enum worker_msg_type */
        uint64_t paid_until[_WORKER_MSG_MAX]; /* CLOCK_MONOTONIC, microseconds: of a message with a rate */
        /* How many short messages the socket of the worker keeps while ublkd does not read: so many NEWS may come at
         * once. 0: fewer than any rule allows. */
        unsigned kept;
};

/* Return why the worker must not send a message of this type now, as a clause for worker_death ("it ..."), or NULL:
 * then count it. stage: of the worker; now: CLOCK_MONOTONIC, microseconds. */
const char *worker_messages_fault(
        struct worker_messages *messages, enum worker_msg_type type, enum worker_stage stage, uint64_t now);

/* Return whether a NOTICE of a disk is still to be reported, and count it then. One connection has as many: a worker that sends
 * more is under an attacker's control, and this bound is for the workers of one disk that follow each other. They may have
 * done no wrong: each may have two things to report, and any process of root may kill them one after the other. paid_until: of
 * the disk; 0 at first. */
bool worker_messages_takes_notice(uint64_t *paid_until, uint64_t now);
