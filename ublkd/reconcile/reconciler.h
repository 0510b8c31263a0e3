/* SPDX-License-Identifier: MIT */
/* Makes the devices as their specs want them: a de-duplicating queue of devices, one step at a time for each.
 * An event only queues a device; every decision reads the facts again. Runs on the supervisor's loop. */
#pragma once

#include "ublkd/model/daemon_counters.h"
#include "ublkd/reconcile/parts/surroundings.h"

struct reconciler;

/* Adopt the living workers, and queue every device. All pointers in config outlive the reconciler. Return 0
 * or -errno. */
int reconciler_new(const struct reconciler_config *config, struct reconciler **ret);
struct reconciler *reconciler_free(struct reconciler *reconciler);

/* Read the counters since the start. */
void reconciler_counters(const struct reconciler *reconciler, struct daemon_counters *ret);

/* Set the control plane (NULL: it was lost), and queue every device. Without it no device changes, and each
 * status says why. */
void reconciler_set_control(struct reconciler *reconciler, struct ublk_ctl *ctl);
