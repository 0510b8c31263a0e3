/* SPDX-License-Identifier: MIT */
/* The event loop of the supervisor. */
#pragma once

#include <systemd/sd-event.h>

/* Create the loop: SIGTERM and SIGINT end it, SIGPIPE is ignored, and the watchdog of systemd is fed. Return 0 and a
 * reference that the caller drops, or -errno. */
int event_loop_open(sd_event **ret);
/* Have `reload` called for each SIGHUP, which is ignored until then. Return 0 or -errno. */
int event_loop_on_reload(sd_event *event, sd_event_signal_handler_t reload, void *userdata);
