/* SPDX-License-Identifier: MIT */
/* Opens the control plane and waits for what comes of it, for tests. */
#pragma once

#include "ublkd/driver/ublk_ctl.h"

struct control_verdict {
        unsigned count;
        int result;
        uint64_t features;
        struct problem_list problems; /* the caller's to clear */
};

static inline void control_on_opened(
        void *userdata, int result, uint64_t features, struct problem_list *problems)
{
        struct control_verdict *verdict = userdata;

        verdict->count++;
        verdict->result = result;
        verdict->features = features;
        verdict->problems = *problems;
        *problems = (struct problem_list){};
}

/* `options` without `opened`. NULL: it could not even begin. */
static inline struct ublk_ctl *control_open(
        sd_event *event, struct ublk_ctl_options options, struct control_verdict *ret)
{
        struct ublk_ctl *ctl = NULL;

        options.opened = control_on_opened;
        options.userdata = ret;
        if (ublk_ctl_open(event, &options, &ctl) < 0)
                return NULL;
        while (ret->count == 0 && sd_event_run(event, UINT64_MAX) >= 0)
                continue;
        return ctl;
}
