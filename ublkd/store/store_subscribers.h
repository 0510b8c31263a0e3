/* SPDX-License-Identifier: MIT */
/* Who is told of changes. For the store only. */
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

/* 0 or -ENOMEM. Not while announcing. */
int store_subscribers_add(struct store_subscribers *subscribers, store_subscriber callback, void *userdata);
/* Also from within a callback. */
void store_subscribers_remove(
        struct store_subscribers *subscribers, store_subscriber callback, void *userdata);
void store_subscribers_announce(struct store_subscribers *subscribers, const struct store_event *event);
