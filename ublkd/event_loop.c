/* SPDX-License-Identifier: MIT */
/* The event loop of the supervisor: its signals and its watchdog. */
#include "ublkd/event_loop.h"

#include "ublkd/base/cleanup.h"

#include <signal.h>
#include <stdbool.h>

static int end_by_signals(sd_event *event)
{
        static const int ends[] = {SIGTERM, SIGINT};
        sigset_t mask;

        sigemptyset(&mask);
        for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
                sigaddset(&mask, ends[i]);
        sigaddset(&mask, SIGHUP); /* event_loop_on_reload() handles it */
        if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
                return -errno;
        if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
                return -errno;
        for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
                int r = sd_event_add_signal(event, NULL, ends[i], NULL, NULL); /* NULL: ends the loop */

                if (r < 0)
                        return r;
        }
        return 0;
}

int event_loop_open(sd_event **ret)
{
        sd_event *event;
        int r = sd_event_default(&event);

        if (r < 0)
                return r;
        r = end_by_signals(event);
        if (r >= 0)
                r = sd_event_set_watchdog(event, true);
        if (r < 0) {
                sd_event_unref(event);
                return r;
        }
        *ret = event;
        return 0;
}

int event_loop_on_reload(sd_event *event, sd_event_signal_handler_t reload, void *userdata)
{
        return sd_event_add_signal(event, NULL, SIGHUP, reload, userdata);
}
