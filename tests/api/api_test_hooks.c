/* SPDX-License-Identifier: MIT */
/* Fakes of what the API asks the supervisor for. */
#include "tests/api/api_test_hooks.h"

#include "ublkd/model/device_spec_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

struct spec_preflight {
        sd_event_source *end;
        void (*then)(void *userdata, bool tried, enum condition_reason reason, const char *refusal);
        void *userdata;
};

static char the_refusal[256];
static int preflights;

static enum backing_reach the_reach;

void api_test_reach(enum backing_reach reach)
{
        the_reach = reach;
}

/* Return whether `next` has the path of a store of the device at its place. */
static bool keeps_a_path(const struct device_record *record, const struct device_spec *next)
{
        for (unsigned i = 0; i < device_spec_stores(record->spec); i++) {
                const char *path = device_spec_store_path(record->spec, i),
                           *later = device_spec_store_path(next, i);

                if (path && later && strcmp(path, later) == 0)
                        return true;
        }
        return false;
}

enum backing_reach api_test_read_reach(
        void *userdata _unused_, const struct device_record *record, const struct device_spec *next)
{
        return the_reach == BACKING_REACH_ELSEWHERE && next && !keeps_a_path(record, next)
                       ? BACKING_REACH_AT_PATH
                       : the_reach;
}

void api_test_counters(void *userdata _unused_, struct daemon_counters *ret)
{
        *ret = (struct daemon_counters){
                .turns = 7,
                .turn_usec = 2500000,
                .turn_buckets = {3, 2, [TURN_BUCKETS - 1] = 1},
                .steps = {{"SPAWN", 5, 1}, {"ADD_DEV", 5, 0}},
                .step_count = 2,
        };
}

void api_test_refuse(const char *refusal)
{
        snprintf(the_refusal, sizeof(the_refusal), "%s", refusal);
}

int api_test_preflights(void)
{
        return preflights;
}

struct spec_preflight *api_test_end_preflight(struct spec_preflight *preflight)
{
        sd_event_source_disable_unref(preflight->end);
        free(preflight);
        return NULL;
}

static int on_end(sd_event_source *source _unused_, void *userdata)
{
        struct spec_preflight preflight = *(struct spec_preflight *)userdata;

        (void)api_test_end_preflight(userdata);
        preflight.then(preflight.userdata, true, *the_refusal ? REASON_BACKING_IN_USE : REASON_NONE,
                *the_refusal ? the_refusal : NULL);
        return 0;
}

int api_test_try(void *userdata _unused_, const struct device_record *record _unused_,
        const struct device_spec *spec _unused_,
        void (*then)(void *userdata, bool tried, enum condition_reason reason, const char *refusal),
        void *then_userdata, struct spec_preflight **ret)
{
        struct spec_preflight *preflight = calloc(1, sizeof(*preflight));
        sd_event *event;
        int r = preflight ? sd_event_default(&event) : -ENOMEM;

        if (r < 0)
                return r;
        preflight->then = then;
        preflight->userdata = then_userdata;
        preflights++;
        *ret = preflight;
        r = sd_event_add_defer(event, &preflight->end, on_end, preflight);
        sd_event_unref(event);
        return r;
}

enum { NO_PROCESS = 1 << 22 };

struct node_delivery {
        sd_event_source *end;
        struct delivery_report report;
        void (*then)(void *userdata, const struct delivery_report *report);
        void *userdata;
};

void api_test_cancel_delivery(struct node_delivery *delivery)
{
        sd_event_source_disable_unref(delivery->end);
        free(delivery);
}

static int on_delivered(sd_event_source *source _unused_, void *userdata)
{
        struct node_delivery delivery = *(struct node_delivery *)userdata;

        api_test_cancel_delivery(userdata);
        delivery.then(delivery.userdata, &delivery.report);
        return 0;
}

int api_test_deliver(void *userdata _unused_, int client, const struct device_record *record,
        const struct delivery_wish *wish, void (*then)(void *userdata, const struct delivery_report *report),
        void *then_userdata, struct node_delivery **ret)
{
        const char *path = wish->path;
        struct node_delivery *delivery;
        unsigned outcome = DELIVERY_DONE;
        int error = 0, r;
        sd_event *event;

        if (sscanf(path, "/begin/%d", &error) == 1)
                return -error;
        if (wish->pid == NO_PROCESS)
                return -ESRCH;
        if (client < 0 || (!wish->mount && !*record->status.node))
                return -ENOENT;
        (void)sscanf(path, "/end/%u/%d", &outcome, &error);
        delivery = calloc(1, sizeof(*delivery));
        r = delivery ? sd_event_default(&event) : -ENOMEM;
        if (r < 0)
                return r;
        *delivery = (struct node_delivery){
                .report = {.outcome = outcome, .error = -error},
                  .then = then, .userdata = then_userdata
        };
        *ret = delivery;
        r = sd_event_add_defer(event, &delivery->end, on_delivered, delivery);
        if (r >= 0 && strcmp(path, "/never") == 0)
                r = sd_event_source_set_enabled(delivery->end, SD_EVENT_OFF);
        sd_event_unref(event);
        return r;
}
