/* SPDX-License-Identifier: MIT */
/* What a change of a device is told as. */
#include "ublkd/store/device_news.h"

#include "ublkd/store/device_record.h"

#include "ublkd/base/json_print.h"

#include <assert.h>
#include <string.h>

struct device_news news_of(
        const struct device_record *record, enum event_type type, const char *reason, const char *message)
{
        return (struct device_news){
                .type = type,
                .reason = reason,
                .message = message,
                .labels = record->spec ? record->spec->options.labels : NULL,
        };
}

struct device_news news_of_spec(
        const struct device_record *before, const struct device_spec *spec, bool new_disk)
{
        return (struct device_news){
                .reason = before ? "SpecChanged" : "Created",
                .message = !before ? "The device is stored; its disk is made next."
                           : !before->status.disk
                                   ? "The spec was changed; the disk that is not there yet follows it."
                           : new_disk ? "The spec was changed; the old disk is removed, and it is made anew."
                                      : "The spec was changed; the disk stays, and follows what can be "
                                        "changed while it is served.",
                .labels = spec->options.labels,
                .asked = true,
        };
}

/* A Warning whatever the phase. */
static const char *const alarming[] = {"CannotGrow"};
/* Done on purpose, in a phase that would be a Warning. */
static const char *const intended[] = {"Restarting"};
/* Of the host, not of a device: the log and GET /host tell it once, not once for each device. */
static const char *const of_host[] = {"HostNotReady"};

static bool is_among(const char *reason, const char *const *reasons, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (strcmp(reasons[i], reason) == 0)
                        return true;
        return false;
}

static enum event_type type_of(enum device_phase phase, const char *reason)
{
        static const enum event_type types[_PHASE_MAX] = {
                [PHASE_RECOVERING] = EVENT_WARNING,
                [PHASE_BACKOFF] = EVENT_WARNING,
                [PHASE_QUIESCED] = EVENT_WARNING,
                [PHASE_FAILED] = EVENT_WARNING,
        };

        if (is_among(reason, alarming, ARRAY_SIZE(alarming)))
                return EVENT_WARNING;
        return is_among(reason, intended, ARRAY_SIZE(intended)) ? EVENT_NORMAL : types[phase];
}

/* Only a change of phase or reason is news: the sentence alone changes with every step and every retry. */
struct device_news news_of_status(const struct device_record *record, const struct device_status *to)
{
        const struct device_status *from = &record->status;
        const char *old_reason = from->reason ? from->reason : "", *reason = to->reason ? to->reason : "";

        if ((from->phase == to->phase && strcmp(old_reason, reason) == 0)
                || is_among(reason, of_host, ARRAY_SIZE(of_host)))
                return (struct device_news){};
        return news_of(record, type_of(to->phase, reason),
                *reason ? reason : device_phase_to_string(to->phase), to->message ? to->message : "");
}

int news_make(struct event_log *log, const struct device_record *record, const struct device_news *news,
        uint64_t revision, struct device_event **ret)
{
        _cleanup_free_ char *labels = NULL;
        struct device_event happened;

        *ret = NULL;
        if (!news || !news->reason)
                return 0;
        if (news->labels && news->labels->child) {
                labels = json_print(news->labels);
                if (!labels)
                        return -ENOMEM;
        }
        happened = (struct device_event){
                .type = news->type,
                .device = record->name,
                .uid = (char *)record->uid, /* only read */
                .reason = (char *)news->reason,
                .message = (char *)news->message,
                .labels = labels,
                .asked = news->asked,
                .last_at = device_record_now(),
        };
        return event_log_make(log, &happened, revision, ret);
}
