/* SPDX-License-Identifier: MIT */
/* Log who asked for which change, by which right, and what became of it. Private to api/.
 *
 * In the journal a record has the fields CLIENT_UID, CLIENT_PID and CLIENT_HOME (host, container, unknown; not over TCP),
 * CLIENT_RIGHT (root, administrators, polkit, token; refused; undecided while polkit is asked), REQUEST, STATUS, and
 * DEVICE_GENERATION, that of the device in the answer. A client without rights cannot flood the log: of what is refused, so
 * many requests of an account and of all together are logged in a minute, and the next one after that says how many were
 * not. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request;

/* In a minute. Users without a rule have a sum of their own, for one of them can take very many uids (/etc/subuid). */
enum {
        REFUSALS_LOGGED = 30, /* of an account */
        REFUSALS_LOGGED_OF_TENANTS = 600,
        REFUSALS_LOGGED_OF_OTHERS = 120,
        AUDIT_ACCOUNTS = 128, /* of more, those that come later are not logged */
};

enum audit_of {
        AUDIT_OF_TENANTS,
        AUDIT_OF_OTHERS, /* of Unix sockets */
        AUDIT_OF_TCP,    /* one account */
        _AUDIT_OF_MAX
};

struct audit {
        uint64_t minute;           /* CLOCK_MONOTONIC microseconds: when the present one began; 0: none has */
        unsigned logged, left_out; /* refusals in it, of all accounts */
        struct {
                uint32_t account;
                unsigned logged;
        } of[AUDIT_ACCOUNTS];
        size_t used;
};

/* Log a request that asked for a change, when it has ended, with or without a reply. Call it once
 * for each request, of whatever method. */
void audit_request(const struct request *request);

/* Return whether a refusal of the account is to be logged, of at most `most` of all accounts in a minute. `now` is the time
 * of CLOCK_MONOTONIC in microseconds. *ret_left_out is how many of the minute before were not; 0: none, or that was returned
 * already. Pure. */
bool audit_takes_refusal(
        struct audit *audit, uint32_t account, unsigned most, uint64_t now, unsigned *ret_left_out);

/* Note the rule of the policy that decides about the request, and the control group of the client that it was compared with
 * (NULL: none), for the audit log. */
void audit_note_rule(struct request *request, const char *place, const char *cgroup);
