/* SPDX-License-Identifier: MIT */
/* Reports to the service manager in one line how the devices are: STATUS= of sd_notify(3), which 'systemctl status' shows. Runs
 * on the loop. */
#pragma once

#include "ublkd/host/host.h"
#include "ublkd/store/device_store.h"

#include <systemd/sd-event.h>

struct service_line;

/* Send the line, and again after each change, once a second at most. `store` and `host` outlive it. Without a service
 * manager it does nothing. Return 0 or -errno. */
int service_line_new(
        sd_event *event, struct device_store *store, const struct host *host, struct service_line **ret);
/* Free it. NULL is fine. Return NULL. */
struct service_line *service_line_free(struct service_line *line);
/* Note that something else than a device has changed: the line is made again. NULL is fine. */
void service_line_changed(struct service_line *line);
