/* SPDX-License-Identifier: MIT */
/* Replaces the workers that run another version of their program than ublkd starts now, one after the other, each with a
 * restart as a client could request it. Runs on the loop. */
#pragma once

#include "ublkd/host/host.h"
#include "ublkd/tasks/service_line.h"
#include "ublkd/store/device_store.h"

#include <stdbool.h>
#include <systemd/sd-event.h>

struct worker_upgrade;

/* Create it; it does nothing before worker_upgrade_set(). Its problem is in host->workers, and counts in `line` (or NULL).
 * `store`, `host` and `line` outlive it. Return 0 or -errno. */
int worker_upgrade_new(sd_event *event, struct device_store *store, struct host *host,
        struct service_line *line, struct worker_upgrade **ret);
/* Free it; a restart that it requested goes on. NULL is fine. Return NULL. */
struct worker_upgrade *worker_upgrade_free(struct worker_upgrade *upgrade);
/* Replace such workers from now on, or keep them. After a failure it begins again. */
void worker_upgrade_set(struct worker_upgrade *upgrade, bool replace);
/* Return whether ublkd may replace the worker of the device now: openers would not notice, and nothing is wrong with the
 * disk. features: of the driver. Pure. */
bool worker_upgrade_may_replace(const struct device_record *record, uint64_t features);
