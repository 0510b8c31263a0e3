/* SPDX-License-Identifier: MIT */
/* The event loop of the supervisor: its signals and its watchdog. */
#include "ublkd/tasks/event_loop.h"

#include "ublkd/base/cleanup.h"

#include <signal.h>
#include <stdbool.h>

static int take_signals(sd_event *event, sd_event_signal_handler_t reload, void *userdata)
{
        const struct {
                int number;
                sd_event_signal_handler_t handler; /* NULL: ends the loop, with `userdata` as its result */
                void *userdata;
        } signals[] = {
                {SIGTERM, NULL,   NULL    },
                {SIGINT,  NULL,   NULL    },
                {SIGHUP,  reload, userdata},
        };
        sigset_t mask;

        sigemptyset(&mask);
        for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
                sigaddset(&mask, signals[i].number);
        if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
                return -errno;
        if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
                return -errno;
        for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
                int r = sd_event_add_signal(
                        event, NULL, signals[i].number, signals[i].handler, signals[i].userdata);

                if (r < 0)
                        return r;
        }
        return 0;
}

int event_loop_open(sd_event_signal_handler_t reload, void *userdata, sd_event **ret)
{
        sd_event *event;
        int r = sd_event_default(&event);

        if (r < 0)
                return r;
        r = take_signals(event, reload, userdata);
        if (r >= 0)
                r = sd_event_set_watchdog(event, true);
        if (r < 0) {
                sd_event_unref(event);
                return r;
        }
        *ret = event;
        return 0;
}
