/* SPDX-License-Identifier: MIT */
/* The log of what happens to devices: one line for each decision, which is the sentence of its event.
 *
 * Every event comes by here, once. Not a line of the log are the steps by which a decision is carried out, as
 * the line before has told what is done next, and what was said already: a try that fails as the last one did
 * is no news. */
#include "ublkd/reconcile/managed_device.h"

#include "ublkd/base/log.h"

#include <string.h>

/* Reasons of a status on the way to what was decided. */
static const char *const steps[] = {
        "Starting", "Recovering", "Restarting", "Growing", "Deleting", "Disabling", "Replacing"};

static bool is_step(const char *reason)
{
        for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
                if (strcmp(steps[i], reason) == 0)
                        return true;
        return false;
}

static bool is_same(const char *one, const char *other)
{
        return one && strcmp(one, other) == 0;
}

/* What the last line has told: a status in this or in other words, anything else in the same words. What the
 * user asked for is always worth a line. */
static bool is_said(
        const struct managed_device *device, enum store_event_kind kind, const struct device_event *event)
{
        const struct trouble_note *said = &device->said;

        switch (kind) {
        case STORE_STATUS:
                return is_step(event->reason) || is_same(said->reason, event->reason)
                       || (is_same(said->reason, "Recovered") && strcmp(event->reason, "Live") == 0);
        case STORE_NOTED:
                return is_same(said->reason, event->reason) && is_same(said->sentence, event->message);
        default:
                return false;
        }
}

/* Without memory a line may come twice. */
static void remember(struct managed_device *device, const struct device_event *event)
{
        device_log_forget(device);
        device->said =
                (struct trouble_note){.reason = strdup(event->reason), .sentence = strdup(event->message)};
}

void device_log_forget(struct managed_device *device)
{
        free(device->said.reason);
        free(device->said.sentence);
        device->said = (struct trouble_note){};
}

/* The event that came of the change, or NULL. What is asked for again is announced, and changes nothing: the
 * newest event is then an older one, or another device's. */
static const struct device_event *event_of(
        const struct managed_device *device, const struct store_event *change)
{
        const struct event_log *log = device_store_events(device->reconciler->config.store);
        size_t count = event_log_count(log);
        const struct device_event *newest = count > 0 ? event_log_at(log, count - 1) : NULL;
        bool is_ours = newest && newest->revision == change->revision
                       && newest->revision != device->event_seen && strcmp(newest->uid, device->uid) == 0;

        return is_ours ? newest : NULL;
}

void device_log(struct managed_device *device, const struct store_event *change)
{
        const struct device_event *event = event_of(device, change);

        if (!event)
                return;
        device->event_seen = event->revision;
        if (is_said(device, change->kind, event))
                return;
        remember(device, event);
        log_record(event->type == EVENT_WARNING ? LOG_WARNING : LOG_INFO,
                &(const struct log_fields){
                        .device = device->name,
                        .worker = device->worker ? worker_proc_pid(device->worker) : 0,
                        .reason = event->reason,
                },
                "%s", event->message);
}
