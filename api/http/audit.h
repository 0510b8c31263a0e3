/* SPDX-License-Identifier: MIT */
/* Log who asked for which change, by which right, and what became of it. Private to api/.
 *
 * In the journal a record has the fields CLIENT_UID, CLIENT_PID and CLIENT_HOME (host, container, unknown; not over TCP),
 * CLIENT_RIGHT (root, administrators, polkit, token; refused; undecided while polkit is asked), REQUEST and STATUS. A
 * client without rights cannot flood the log: of what is refused, so many requests are logged in a minute, and the next
 * one after that says how many were not. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct request;

enum { REFUSALS_LOGGED = 30 }; /* in a minute */

struct audit {
        uint64_t minute;           /* CLOCK_MONOTONIC microseconds: when the present one began; 0: none has */
        unsigned logged, left_out; /* refusals in it */
};

/* Log a request that asked for a change, when it has ended, with or without a reply. Call it once
 * for each request, of whatever method. */
void audit_request(const struct request *request);

/* Return whether a refusal is to be logged. `now` is the time of CLOCK_MONOTONIC in microseconds. *ret_left_out is how
 * many of the minute before were not; 0: none, or that was returned already. Pure. */
bool audit_takes_refusal(struct audit *audit, uint64_t now, unsigned *ret_left_out);

/* Note the rule of the policy that decides about the request, and the control group of the client that it was compared with
 * (NULL: none), for the audit log. */
void audit_note_rule(struct request *request, const char *place, const char *cgroup);
