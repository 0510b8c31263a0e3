/* SPDX-License-Identifier: MIT */
/* The subscribers of the store, in the order of their subscriptions. */
#include "ublkd/store/store_subscribers.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

int store_subscribers_add(struct store_subscribers *subscribers, store_subscriber callback, void *userdata)
{
        struct store_subscriber_entry *entries;

        assert(!subscribers->announcing);
        entries = reallocarray(subscribers->entries, subscribers->count + 1, sizeof(*entries));
        if (!entries)
                return -ENOMEM;
        subscribers->entries = entries;
        entries[subscribers->count++] = (struct store_subscriber_entry){callback, userdata};
        return 0;
}

void store_subscribers_remove(
        struct store_subscribers *subscribers, store_subscriber callback, void *userdata)
{
        for (size_t i = 0; i < subscribers->count; i++) {
                struct store_subscriber_entry *entry = &subscribers->entries[i];

                if (entry->callback != callback || entry->userdata != userdata)
                        continue;
                if (subscribers->announcing) { /* the announcing loop removes it later */
                        entry->callback = NULL;
                        return;
                }
                subscribers->count--;
                memmove(entry, entry + 1, (subscribers->count - i) * sizeof(*entry));
                return;
        }
}

void store_subscribers_announce(struct store_subscribers *subscribers, const struct store_event *event)
{
        size_t kept = 0;

        subscribers->announcing = true;
        for (size_t i = 0; i < subscribers->count; i++)
                if (subscribers->entries[i].callback)
                        subscribers->entries[i].callback(subscribers->entries[i].userdata, event);
        subscribers->announcing = false;
        for (size_t i = 0; i < subscribers->count; i++)
                if (subscribers->entries[i].callback)
                        subscribers->entries[kept++] = subscribers->entries[i];
        subscribers->count = kept;
}
