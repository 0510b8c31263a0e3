/* SPDX-License-Identifier: MIT */
/* The events in memory: an array sorted by revision that grows at its end, and an index by content that finds
 * the event which a new one repeats. */
#include "ublkd/store/event_log.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"
#include "ublkd/base/tree.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

struct kept_event {
        struct device_event *event;
        struct tree_node node;
        struct kept_event *next_free;
};

enum { SHARES = 1024 };

#define DEVICE_KEY "disk:" /* of the account of a device of the administrators, before its uid */

struct event_log {
        struct kept_event slots[EVENTS_MAX + 1]; /* one spare, so that event_log_take() cannot fail */
        struct kept_event *free;                 /* slots without an event */
        /* By revision: a part of `room`. Dropping moves its start; make_room() moves it back, once in EVENTS_MAX
         * events. */
        struct kept_event **events;
        struct kept_event *room[2 * (EVENTS_MAX + 1)];
        size_t count;
        uint16_t shares[SHARES]; /* events of the accounts with that hash: an account has so many at most */
        struct tree index;       /* by device and content, the newest first */
        uint64_t compacted, compacted_saved; /* here, and in the backend */
        struct event_floors floors;          /* of accounts */
        bool floors_unsaved;
        account_of_user account; /* NULL: each tenant is one */
        void *account_userdata;
        uint64_t floor_of_all; /* of all tenants: accounts may have been others before */
};

/* ---- the index ---- */

static struct kept_event *kept_of(const struct tree_node *node)
{
        return TREE_OBJECT(node, struct kept_event, node);
}

static int compare_numbers(uint64_t one, uint64_t other)
{
        return (one > other) - (one < other);
}

/* Disks without a record share one uid, so names are compared, too. */
static int compare_what(const struct device_event *one, const struct device_event *other)
{
        int order = compare_numbers(one->reason, other->reason);

        if (order == 0)
                order = compare_numbers(one->type, other->type);
        if (order == 0)
                order = strcmp(one->uid, other->uid);
        return order != 0 ? order : strcmp(one->device, other->device);
}

static int compare(const void *key, const struct tree_node *node)
{
        const struct device_event *one = key, *other = kept_of(node)->event;
        int order = compare_what(one, other);

        if (order == 0)
                order = compare_numbers(other->revision, one->revision);
        return order != 0 ? order : compare_numbers(other->first_revision, one->first_revision);
}

/* Return the newest event with the content of `event`, or NULL. */
static struct kept_event *find_newest(const struct event_log *log, const struct device_event *event)
{
        struct device_event key = *event;
        struct kept_event *newest;

        key.revision = key.first_revision = UINT64_MAX;
        newest = kept_of(tree_from(&log->index, &key));
        return newest && compare_what(newest->event, event) == 0 ? newest : NULL;
}

/* Return the next older event with the same content, or NULL. */
static struct kept_event *find_older(const struct kept_event *kept)
{
        struct kept_event *next = kept_of(kept->node.next);

        return next && compare_what(next->event, kept->event) == 0 ? next : NULL;
}

/* ---- the events of an account ---- */

static uint16_t *share_of(struct event_log *log, const char *account)
{
        uint32_t hash = UINT32_C(2166136261);

        for (const char *c = account; *c; c++)
                hash = (hash ^ (unsigned char)*c) * UINT32_C(16777619);
        return &log->shares[hash % SHARES];
}

/* Put `event`, which is taken over, into a slot and into the index. */
static struct kept_event *keep(struct event_log *log, struct device_event *event)
{
        struct kept_event *kept = log->free;

        assert(kept);
        log->free = kept->next_free;
        kept->event = event;
        (*share_of(log, event->account))++;
        tree_insert(&log->index, event, &kept->node);
        return kept;
}

/* Free the event and its slot; the caller removes it from the array. */
static void drop(struct event_log *log, struct kept_event *kept)
{
        (void)tree_remove(&log->index, kept->event);
        (*share_of(log, kept->event->account))--;
        kept->event = device_event_free(kept->event);
        kept->next_free = log->free;
        log->free = kept;
}

/* ---- the whole ---- */

int event_log_new(struct event_log **ret)
{
        struct event_log *log = calloc(1, sizeof(*log));

        if (!log)
                return -ENOMEM;
        log->events = log->room;
        log->index.compare = compare;
        for (size_t i = ARRAY_SIZE(log->slots); i-- > 0;) {
                log->slots[i].next_free = log->free;
                log->free = &log->slots[i];
        }
        *ret = log;
        return 0;
}

struct event_log *event_log_free(struct event_log *log)
{
        if (!log)
                return NULL;
        for (size_t i = 0; i < log->count; i++)
                device_event_free(log->events[i]->event);
        free(log);
        return NULL;
}

static bool is_of_tenants(const char *account)
{
        return strncmp(account, DEVICE_KEY, strlen(DEVICE_KEY)) != 0;
}

void event_log_set_accounts(struct event_log *log, account_of_user first, void *userdata)
{
        log->floor_of_all = event_floors_highest(&log->floors, is_of_tenants);
        log->account = first;
        log->account_userdata = userdata;
}

/* Write the key of the account of the tenant. */
static void account_of_tenant(const struct event_log *log, const char *tenant, char ret[static TENANT_SIZE])
{
        uid_t user;

        if (log->account && tenant_user(tenant, &user))
                tenant_of_user(log->account(log->account_userdata, user), ret);
        else
                snprintf(ret, TENANT_SIZE, "%s", tenant);
}

/* Return whether it is the event of a disk without a record. */
static bool is_of_no_device(const struct device_event *event)
{
        return *event->uid == '\0' || strcmp(event->uid, UID_OF_NO_DEVICE) == 0;
}

/* No two uids have the same beginning. The event of a disk without a record has no account: "". */
static void account_of(
        const struct event_log *log, const struct device_event *event, char ret[static TENANT_SIZE])
{
        if (tenant_is_set(event->tenant) || is_of_no_device(event))
                account_of_tenant(log, event->tenant, ret);
        else
                snprintf(ret, TENANT_SIZE, DEVICE_KEY "%.*s", (int)(TENANT_SIZE - sizeof(DEVICE_KEY)),
                        event->uid);
}

static uint64_t usec_before(uint64_t now, uint64_t seconds)
{
        uint64_t usec = seconds * USEC_PER_SEC;

        return now > usec ? now - usec : 0;
}

static void drop_oldest(struct event_log *log, size_t dropped)
{
        if (dropped == 0)
                return;
        log->compacted = log->events[dropped - 1]->event->revision;
        for (size_t i = 0; i < dropped; i++)
                drop(log, log->events[i]);
        log->count -= dropped;
        log->events += dropped;
        event_floors_pass(&log->floors, log->compacted);
}

/* Drop the oldest events: those above EVENTS_MAX, and those that are too old. */
static void compact(struct event_log *log, uint64_t now)
{
        uint64_t oldest = usec_before(now, EVENT_AGE_MAX_SECONDS);
        size_t dropped = log->count > EVENTS_MAX ? log->count - EVENTS_MAX : 0;

        while (dropped < log->count && log->events[dropped]->event->last_at < oldest)
                dropped++;
        drop_oldest(log, dropped);
}

static bool is_of(const struct event_log *log, size_t index, const char *account)
{
        return strcmp(log->events[index]->event->account, account) == 0;
}

static size_t count_of(const struct event_log *log, const char *account)
{
        size_t count = 0;

        for (size_t i = 0; i < log->count; i++)
                count += is_of(log, i, account);
        return count;
}

/* Drop the `dropped` oldest events of the account. Return the revision of the last one. */
static uint64_t drop_oldest_of(struct event_log *log, const char *account, size_t dropped)
{
        uint64_t last = 0;
        size_t kept = 0;

        for (size_t i = 0; i < log->count; i++) {
                struct kept_event *event = log->events[i];

                if (dropped > 0 && is_of(log, i, account)) {
                        last = event->event->revision;
                        drop(log, event);
                        dropped--;
                } else {
                        log->events[kept++] = event;
                }
        }
        log->count = kept;
        return last;
}

static void raise_floor(struct event_log *log, const char *account, uint64_t revision)
{
        uint64_t given_up = event_floors_raise(&log->floors, account, revision);

        log->floors_unsaved = true;
        if (given_up > 0)
                drop_oldest(log, event_log_after(log, given_up));
}

/* Half of the events go at once, so that the scan is rare. account: not of an event that goes. */
static void compact_account(struct event_log *log, const char *account)
{
        bool may_be_too_many = tenant_is_set(account) && *share_of(log, account) > EVENTS_OF_ACCOUNT_MAX;
        size_t count = may_be_too_many ? count_of(log, account) : 0;

        if (count > EVENTS_OF_ACCOUNT_MAX)
                raise_floor(log, account, drop_oldest_of(log, account, count - EVENTS_OF_ACCOUNT_KEPT));
}

/* An account that has lost events of its own has had EVENTS_OF_ACCOUNT_KEPT since then, until the compaction of all events has
 * passed its floor. So one with fewer has no floor, and for the others it is not higher than before their oldest event. */
static void restore_floors(struct event_log *log)
{
        for (size_t i = 0, count = log->count; i < count; i++) {
                const struct device_event *event = log->events[i]->event;

                if (!tenant_is_set(event->account) || *share_of(log, event->account) < EVENTS_OF_ACCOUNT_KEPT
                        || event_floors_get(&log->floors, event->account) > 0
                        || count_of(log, event->account) < EVENTS_OF_ACCOUNT_KEPT)
                        continue;
                if (log->floors.count == EVENT_FLOORS_MAX) { /* none is missing then */
                        drop_oldest(log, i);
                        return;
                }
                raise_floor(log, event->account, event->revision - 1);
        }
}

size_t event_log_after(const struct event_log *log, uint64_t revision)
{
        size_t low = 0, high = log->count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (log->events[middle]->event->revision > revision)
                        high = middle;
                else
                        low = middle + 1;
        }
        return low;
}

/* Make room for one event at the end of the array. */
static void make_room(struct event_log *log)
{
        if (log->events + log->count < log->room + ARRAY_SIZE(log->room))
                return;
        memmove(log->room, log->events, log->count * sizeof(log->events[0]));
        log->events = log->room;
}

static void insert_at(struct event_log *log, size_t index, struct kept_event *kept)
{
        make_room(log);
        memmove(log->events + index + 1, log->events + index, (log->count - index) * sizeof(log->events[0]));
        log->events[index] = kept;
        log->count++;
}

int event_log_load(void *userdata, const struct device_event *event)
{
        struct event_log *log = userdata;
        struct device_event *copy = device_event_copy(event);

        if (!copy)
                return -ENOMEM;
        copy->unsaved = false;
        if (!tenant_is_set(copy->account)) /* of an ublkd that has not written it */
                strcpy(copy->account, copy->tenant);
        insert_at(log, event_log_after(log, event->revision), keep(log, copy));
        if (log->count > EVENTS_MAX)
                compact(log, 0);
        return 0;
}

void event_log_loaded(struct event_log *log, uint64_t compacted, uint64_t now)
{
        log->compacted = log->compacted > compacted ? log->compacted : compacted;
        log->compacted_saved = compacted;
        compact(log, now);
        restore_floors(log);
        log->floors_unsaved = false;
}

/* Return the event that `happened` repeats, or NULL. */
static const struct device_event *find_repeated(
        const struct event_log *log, const struct device_event *happened)
{
        uint64_t oldest = usec_before(happened->last_at, EVENT_REPEAT_SECONDS);
        const struct kept_event *kept = happened->apart ? NULL : find_newest(log, happened);

        return kept && kept->event->last_at >= oldest ? kept->event : NULL;
}

int event_log_make(struct event_log *log, const struct device_event *happened, uint64_t revision,
        struct device_event **ret)
{
        const struct device_event *repeated = find_repeated(log, happened);
        struct device_event *event = device_event_copy(happened);

        if (!event)
                return -ENOMEM;
        event->revision = event->first_revision = revision;
        event->first_at = happened->last_at;
        event->count = 1;
        account_of(log, event, event->account);
        if (repeated) { /* its account keeps as many events: see restore_floors() */
                strcpy(event->account, repeated->account);
                event->first_revision = repeated->first_revision;
                event->first_at = repeated->first_at;
                event->count = repeated->count + 1;
        }
        *ret = event;
        return 0;
}

static void remove_from_array(struct event_log *log, const struct kept_event *kept)
{
        size_t i = event_log_after(log, kept->event->revision - 1);

        while (log->events[i] != kept) /* two events of a database may have the same revision */
                i++;
        log->count--;
        memmove(log->events + i, log->events + i + 1, (log->count - i) * sizeof(log->events[0]));
}

/* Remove the event that `event` continues. A client that has not seen it will see the continuation. */
static void remove_continued(struct event_log *log, const struct device_event *event)
{
        struct kept_event *kept = event->count > 1 ? find_newest(log, event) : NULL;

        while (kept && kept->event->first_revision != event->first_revision)
                kept = find_older(kept);
        if (!kept)
                return;
        remove_from_array(log, kept);
        drop(log, kept);
}

void event_log_take(struct event_log *log, struct device_event *event, bool saved)
{
        if (!event)
                return;
        event->unsaved = !saved;
        assert(log->count == 0 || log->events[log->count - 1]->event->revision < event->revision);
        remove_continued(log, event);
        make_room(log);
        log->events[log->count++] = keep(log, event);
        compact_account(log, event->account);
        compact(log, event->last_at);
}

size_t event_log_count(const struct event_log *log)
{
        return log->count;
}

const struct device_event *event_log_at(const struct event_log *log, size_t index)
{
        assert(index < log->count);
        return log->events[index]->event;
}

enum event_fate event_log_fate(
        const struct event_log *log, const struct device_event *what, uint64_t revision)
{
        const struct kept_event *kept;

        if (revision <= log->compacted)
                return EVENT_SAVED;
        for (kept = find_newest(log, what); kept && kept->event->revision >= revision;
                kept = find_older(kept))
                if (kept->event->first_revision <= revision)
                        return kept->event->unsaved ? EVENT_WAITS : EVENT_SAVED;
        return EVENT_LOST;
}

uint64_t event_log_newest(const struct event_log *log)
{
        return log->count > 0 ? log->events[log->count - 1]->event->revision : 0;
}

uint64_t event_log_compacted(const struct event_log *log)
{
        return log->compacted;
}

uint64_t event_log_compacted_of(const struct event_log *log, const char *tenant)
{
        char account[TENANT_SIZE];
        uint64_t floor;

        if (tenant)
                account_of_tenant(log, tenant, account);
        floor = tenant ? event_floors_get(&log->floors, account) : event_floors_highest(&log->floors, NULL);
        if (tenant && floor < log->floor_of_all)
                floor = log->floor_of_all;
        return floor > log->compacted ? floor : log->compacted;
}

const struct event_floors *event_log_floors(const struct event_log *log)
{
        return &log->floors;
}

size_t event_log_unsaved(const struct event_log *log, const struct device_event **ret, size_t size)
{
        size_t count = 0;

        for (size_t i = 0; i < log->count; i++) {
                if (!log->events[i]->event->unsaved)
                        continue;
                if (count < size)
                        ret[count] = log->events[i]->event;
                count++;
        }
        return count;
}

bool event_log_has_dropped(const struct event_log *log)
{
        return log->compacted > log->compacted_saved || log->floors_unsaved;
}

void event_log_saved(struct event_log *log)
{
        log->compacted_saved = log->compacted;
        log->floors_unsaved = false;
        for (size_t i = 0; i < log->count; i++)
                log->events[i]->event->unsaved = false;
}
