/* SPDX-License-Identifier: MIT */
/* Fakes of what the API asks the supervisor for. */
#include "tests/api/api_test_hooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-event.h>

struct spec_preflight {
        sd_event_source *end;
        void (*then)(void *userdata, bool tried, const char *refusal);
        void *userdata;
};

static char the_refusal[256];
static int preflights;

static enum backing_reach the_reach;

void api_test_reach(enum backing_reach reach)
{
        the_reach = reach;
}

enum backing_reach api_test_read_reach(void *userdata _unused_, const struct device_record *record _unused_)
{
        return the_reach;
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
        preflight.then(preflight.userdata, true, *the_refusal ? the_refusal : NULL);
        return 0;
}

int api_test_try(void *userdata _unused_, const struct device_record *record _unused_,
        const struct device_spec *spec _unused_,
        void (*then)(void *userdata, bool tried, const char *refusal), void *then_userdata,
        struct spec_preflight **ret)
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
