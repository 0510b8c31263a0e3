/* SPDX-License-Identifier: MIT */
/* Check the consent to lost writes. It names the faults that the client saw: a later fault is not
 * accepted. */
#include "api/resources/loss_consent.h"

#include "api/http/respond.h"

#include <string.h>

static const char *message_of(const struct device_record *record, enum condition_type type)
{
        const char *message = record->status.conditions.of[type].message;

        return message ? message : "";
}

/* Reply which faults the token in the request leaves out; all of them if it names one that does not exist. */
static void reply_other(struct request *request, const struct device_record *record, const char *given)
{
        const struct device_faults *faults = &record->status.faults,
                                   flush = {.flush = faults->flush, .flush_at = faults->flush_at},
                                   cut = {.cut = faults->cut, .cut_at = faults->cut_at};
        char token[WRITE_ERRORS_TOKEN_SIZE], flush_token[WRITE_ERRORS_TOKEN_SIZE],
                cut_token[WRITE_ERRORS_TOKEN_SIZE];

        write_errors_token(faults, token);
        write_errors_token(&flush, flush_token);
        write_errors_token(&cut, cut_token);
        if (!*token)
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "accept-write-errors names a fault that does not exist any more: "
                        "status.writeErrors is null. Restart the device without it.");
        else
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "accept-write-errors does not match the status. status.writeErrors is \"%s\". Not "
                        "named: %s%s%s",
                        token, strstr(given, flush_token) ? "" : message_of(record, CONDITION_DURABLE),
                        strstr(given, flush_token) || strstr(given, cut_token) ? "" : " ",
                        strstr(given, cut_token) ? "" : message_of(record, CONDITION_BACKING_WHOLE));
}

bool loss_consent_holds(struct request *request, const struct device_record *record, bool *ret)
{
        const struct device_faults *faults = &record->status.faults;
        const char *given = request->query.accept_write_errors;
        char token[WRITE_ERRORS_TOKEN_SIZE];

        *ret = given || (request->query.accept_any_write_error && (faults->flush > 0 || faults->cut > 0));
        if (!*ret)
                return true;
        write_errors_token(faults, token);
        if (given ? strcmp(given, token) == 0 : faults->flush == 0 || faults->cut == 0)
                return true;
        reply_other(request, record, given ? given : "");
        return false;
}
