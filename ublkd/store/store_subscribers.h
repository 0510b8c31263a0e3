/* SPDX-License-Identifier: MIT */
/* The subscribers of the store. For the store only. */
#pragma once

#include "ublkd/store/device_store.h"

struct store_subscribers {
        struct store_subscriber_entry {
                store_subscriber callback; /* NULL: unsubscribed while events were being announced */
                void *userdata;
        } *entries;
        size_t count;
        bool announcing;
};

/* Add a subscriber; not from a callback. Return 0 or -ENOMEM. */
int store_subscribers_add(struct store_subscribers *subscribers, store_subscriber callback, void *userdata);
/* Remove a subscriber; also from a callback. */
void store_subscribers_remove(
        struct store_subscribers *subscribers, store_subscriber callback, void *userdata);
void store_subscribers_announce(struct store_subscribers *subscribers, const struct store_event *event);
