/* SPDX-License-Identifier: MIT */
/* Send a request, and print the daemon's own sentences if it fails. */
#pragma once

#include "ublkctl/client/client.h"
#include "ublkctl/client/context.h"

/* Begin a line about a failure on stderr: "ublkctl: NAME: ". about: a device, or NULL. */
void begin_line(const char *about);
/* Print one sentence on stderr, about a device or NULL. */
void complain(const char *about, const char *format, ...) _printf_(2, 3);

/* Send a request, and print the problem if the answer is one; the problem's kind decides the status. `about`:
 * the device, or NULL. STATUS_OK: an answer below 400, which the caller clears with answer_clear(). On
 * failure there is nothing to clear. */
enum exit_status call(
        struct context *context, const struct request *request, const char *about, struct answer *ret);

/* Print the problem in `answer`, and return its status. */
enum exit_status report_problem(
        const struct request *request, const char *about, const struct answer *answer);

/* Return whether the answer is a problem of this kind ("name-taken"). */
bool is_problem(const struct answer *answer, const char *kind);

/* Return "/devices/NAME" and `rest`, which the caller frees; NULL on ENOMEM. */
char *device_path(const char *name, const char *rest);

/* Send GET /devices/NAME, otherwise like call(). */
enum exit_status call_get(struct context *context, const char *name, struct answer *ret);

/* Run `verb` on each of the names, also after a failure, and merge the statuses. */
enum exit_status for_each_name(struct context *context, int argc, char *argv[],
        enum exit_status (*verb)(struct context *context, const char *name));
