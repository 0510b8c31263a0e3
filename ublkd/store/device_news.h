/* SPDX-License-Identifier: MIT */
/* What a change of a device is told as. For the store only. */
#pragma once

#include "ublkd/store/device_store.h"

/* Texts are lent. */
struct device_news {
        enum event_type type;
        enum condition_reason reason; /* REASON_NONE: the change is not worth an event */
        const char *message;
        const cJSON *labels; /* of the device's spec, NULL: none */
        bool asked;          /* somebody asked for it */
};

/* What happened to the device of `record`, in these words. */
struct device_news news_of(const struct device_record *record, enum event_type type,
        enum condition_reason reason, const char *message);
/* A new spec: of a new device (`before` is NULL), or with or without a new disk for an old one. */
struct device_news news_of_spec(
        const struct device_record *before, const struct device_spec *spec, bool new_disk);
/* The step from the status of `record` to `to`; no news when phase and reason stay. */
struct device_news news_of_status(const struct device_record *record, const struct device_status *to);

/* The event that `news` of the device `record` comes to, see event_log_make(); NULL when there is none. 0 or
 * -ENOMEM. */
int news_make(struct event_log *log, const struct device_record *record, const struct device_news *news,
        uint64_t revision, struct device_event **ret);
