/* SPDX-License-Identifier: MIT */
/* A request whose failure is told to the user, in the daemon's own words. */
#pragma once

#include "ublkctl/client/client.h"
#include "ublkctl/client/context.h"

/* Begins a line about a failure on stderr: "ublkctl: NAME: "; about: a device, or NULL. */
void say_about(const char *about);
/* One sentence on stderr, about a device or NULL. */
void say(const char *about, const char *format, ...) _printf_(2, 3);

/* Asks, and prints a problem that is answered; its kind is the status. `about`: the device, or NULL.
 * STATUS_OK: an answer below 400, to be released with answer_clear(). A failure leaves nothing to release. */
enum exit_status call(
        struct context *context, const struct request *request, const char *about, struct answer *ret);

/* Prints the problem that `answer` is, and returns the status that goes with it. */
enum exit_status report_problem(
        const struct request *request, const char *about, const struct answer *answer);

/* Whether the answer is a problem of this kind ("name-taken"). */
bool is_problem(const struct answer *answer, const char *kind);

/* "/devices/NAME" and what follows; NULL: out of memory. The caller frees it. */
char *device_path(const char *name, const char *rest);

/* GET /devices/NAME; call() for the rest. */
enum exit_status call_get(struct context *context, const char *name, struct answer *ret);

/* Runs `verb` on each of the names, goes on after a failure, and merges the statuses. */
enum exit_status for_each_name(struct context *context, int argc, char *argv[],
        enum exit_status (*verb)(struct context *context, const char *name));
