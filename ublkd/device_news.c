/* What a change of a device is told as. */
#include "ublkd/device_news.h"

#include "ublkd/device_record.h"

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
                .message = !before    ? "The device is stored; its disk is made next."
                           : new_disk ? "The spec was changed; the old disk is removed, and it is made anew."
                                      : "The spec was changed; the disk stays, and follows what can be "
                                        "changed while it is served.",
                .labels = spec->options.labels,
        };
}

/* Only a change of phase or reason is news: the sentence alone changes with every step and every retry. */
struct device_news news_of_status(const struct device_record *record, const struct device_status *to)
{
        static const enum event_type types[_PHASE_MAX] = {
                [PHASE_RECOVERING] = EVENT_WARNING,
                [PHASE_BACKOFF] = EVENT_WARNING,
                [PHASE_QUIESCED] = EVENT_WARNING,
                [PHASE_FAILED] = EVENT_WARNING,
        };
        const struct device_status *from = &record->status;
        const char *old_reason = from->reason ? from->reason : "", *reason = to->reason ? to->reason : "";

        if (from->phase == to->phase && strcmp(old_reason, reason) == 0)
                return (struct device_news){};
        return news_of(record, types[to->phase], *reason ? reason : device_phase_to_string(to->phase),
                to->message ? to->message : "");
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
                labels = cJSON_PrintUnformatted(news->labels);
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
                .last_at = device_record_now(),
        };
        return event_log_make(log, &happened, revision, ret);
}
