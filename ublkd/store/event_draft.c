/* SPDX-License-Identifier: MIT */
/* Makes the events of changes that the store itself sees: of a spec, and of a status. */
#include "ublkd/store/event_draft.h"

#include "ublkd/values/json_print.h"

#include <assert.h>
#include <string.h>

struct event_draft draft_of(const struct device_record *record, enum event_type type,
        enum condition_reason reason, const char *message)
{
        return (struct event_draft){
                .type = type,
                .reason = reason,
                .message = message,
                .labels = record->spec ? record->spec->options.labels : NULL,
        };
}

/* Return what a change of the spec does. */
static const char *change_message(bool has_disk, bool new_disk, bool by_file)
{
        if (!has_disk)
                return by_file ? "The file of the device changed the spec; the disk does not exist yet and "
                                 "will be "
                                 "created from it."
                               : "A client changed the spec; the disk does not exist yet and will be created "
                                 "from it.";
        if (new_disk)
                return by_file ? "The file of the device changed the spec; ublkd removes the old disk and "
                                 "creates a "
                                 "new one."
                               : "A client changed the spec; ublkd removes the old disk and creates a new "
                                 "one.";
        return by_file ? "The file of the device changed the spec; the disk stays, and ublkd applies the "
                         "changes to it."
                       : "A client changed the spec; the disk stays, and ublkd applies the changes to it.";
}

struct event_draft draft_of_spec(
        const struct device_record *before, const struct device_spec *spec, bool new_disk, bool by_file)
{
        return (struct event_draft){
                .reason = before ? REASON_SPEC_CHANGED : REASON_CREATED,
                .message = before ? change_message(before->status.disk, new_disk, by_file)
                                  : "ublkd stored the device; it creates the disk next.",
                .labels = spec->options.labels,
                .apart = true,
        };
}

static enum event_type type_of(enum device_phase phase, enum condition_reason reason)
{
        static const enum event_type types[_PHASE_MAX] = {
                [PHASE_RECOVERING] = EVENT_WARNING,
                [PHASE_BACKOFF] = EVENT_WARNING,
                [PHASE_QUIESCED] = EVENT_WARNING,
                [PHASE_FAILED] = EVENT_WARNING,
        };

        switch (reason_info(reason)->weight) {
        case REASON_ALARMING:
                return EVENT_WARNING;
        case REASON_INTENDED:
                return EVENT_NORMAL;
        case REASON_AS_PHASE:
                break;
        }
        return types[phase];
}

/* Only a change of phase or reason makes an event: the sentence alone changes with every step and every retry.
 * The log and GET /host report a problem of the host once; it makes no event for each device. */
struct event_draft draft_of_status(const struct device_record *record, const struct device_status *to)
{
        const struct device_status *from = &record->status;

        if ((from->phase == to->phase && from->reason == to->reason) || reason_info(to->reason)->of_host)
                return (struct event_draft){};
        return draft_of(record, type_of(to->phase, to->reason), reason_from_string(device_status_reason(to)),
                to->message ? to->message : "");
}

int draft_make(struct event_log *log, const struct device_record *record, const struct event_draft *draft,
        uint64_t revision, struct device_event **ret)
{
        _cleanup_free_ char *labels = NULL;
        struct device_event happened;

        *ret = NULL;
        if (!draft || draft->reason == REASON_NONE)
                return 0;
        if (draft->labels && draft->labels->child) {
                labels = json_print(draft->labels);
                if (!labels)
                        return -ENOMEM;
        }
        happened = (struct device_event){
                .type = draft->type,
                .device = record->name,
                .uid = (char *)record->uid, /* not changed */
                .reason = draft->reason,
                .message = (char *)draft->message,
                .labels = labels,
                .apart = draft->apart,
                .last_at = device_record_now(),
        };
        strcpy(happened.tenant, record->tenant);
        return event_log_make(log, &happened, revision, ret);
}
