/* SPDX-License-Identifier: MIT */
/* Logs the events of devices: one line for each decision, with the sentence of its event. A subscriber of the
 * store. */
#pragma once

#include "ublkd/store/device_store.h"

struct event_journal;

/* Subscribe to the store. Return 0 or -ENOMEM. */
int event_journal_new(struct device_store *store, struct event_journal **ret);
/* Unsubscribe and free. NULL is fine. Return NULL. */
struct event_journal *event_journal_free(struct event_journal *journal);
