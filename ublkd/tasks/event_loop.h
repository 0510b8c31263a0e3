/* SPDX-License-Identifier: MIT */
/* The event loop of the supervisor. */
#pragma once

#include <systemd/sd-event.h>

/* Create the loop: SIGTERM and SIGINT end it, SIGHUP calls `reload`, SIGPIPE is ignored, and the watchdog of systemd is
 * fed. Return 0 and a reference that the caller drops, or -errno. */
int event_loop_open(sd_event_signal_handler_t reload, void *userdata, sd_event **ret);
