/* SPDX-License-Identifier: MIT */
/* The log of what happens to devices: one line for each decision, which is the sentence of its event. A
 * subscriber of the store, like any other. */
#pragma once

#include "ublkd/store/device_store.h"

struct event_journal;

/* Subscribes to the store. 0 or -ENOMEM. */
int event_journal_new(struct device_store *store, struct event_journal **ret);
/* Unsubscribes. NULL is fine. Returns NULL. */
struct event_journal *event_journal_free(struct event_journal *journal);
