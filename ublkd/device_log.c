/* The log of what happens to devices: one line for each decision, which is the sentence of its event.
 *
 * Every event comes by here, once. Not a line of the log are the steps by which a decision is carried out, as
 * the line before has told what is done next, and what was said already: a try that fails as the last one did
 * is no news. */
#include "ublkd/managed_device.h"

#include "ublkd/base/log.h"

#include <stdio.h>
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

/* A status that the last line has told of, in this or in other words. */
static bool is_said(const struct managed_device *device, const char *reason)
{
        return strcmp(device->said, reason) == 0
               || (strcmp(device->said, "Recovered") == 0 && strcmp(reason, "Live") == 0);
}

/* The event that came of the change, or NULL. */
static const struct device_event *event_of(const struct device_store *store, const struct store_event *change)
{
        const struct event_log *log = device_store_events(store);
        size_t count = event_log_count(log);
        const struct device_event *newest = count > 0 ? event_log_at(log, count - 1) : NULL;

        return newest && newest->revision == change->revision ? newest : NULL;
}

void device_log(struct managed_device *device, const struct store_event *change)
{
        const struct device_event *event = event_of(device->reconciler->config.store, change);

        if (!event
                || (change->kind == STORE_STATUS
                        && (is_step(event->reason) || is_said(device, event->reason))))
                return;
        snprintf(device->said, sizeof(device->said), "%s", event->reason);
        log_record(event->type == EVENT_WARNING ? LOG_WARNING : LOG_INFO,
                &(const struct log_fields){
                        .device = device->name,
                        .worker = device->worker ? worker_proc_pid(device->worker) : 0,
                        .reason = event->reason,
                },
                "%s", event->message);
}
