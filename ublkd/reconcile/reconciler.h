/* SPDX-License-Identifier: MIT */
/* Brings what is there to what is wanted: a de-duplicating queue of device names, one step at a time for
 * each. Events only queue a name; every decision reads the facts anew. Runs on the supervisor's loop. */
#pragma once

#include "ublkd/model/daemon_counters.h"
#include "ublkd/reconcile/parts/surroundings.h"

struct reconciler;

/* Adopts the workers that live, and queues every device. All pointers in config outlive the reconciler. */
int reconciler_new(const struct reconciler_config *config, struct reconciler **ret);
struct reconciler *reconciler_free(struct reconciler *reconciler);

/* What it has done so far. */
void reconciler_counters(const struct reconciler *reconciler, struct daemon_counters *ret);

/* The control plane came (or NULL: went). Until it is there no device moves, and each says why. Queues all.
 */
void reconciler_set_control(struct reconciler *reconciler, struct ublk_ctl *ctl);
