/* SPDX-License-Identifier: MIT */
/* The records of all devices, in memory. The store writes each durable change through to a backend (SQLite, or
 * none in tests) before it acknowledges the change, and calls the subscribers after it. Runs on the
 * supervisor's loop; no call suspends. */
#pragma once

#include "ublkd/store/device_record.h"
#include "ublkd/store/event_log.h"

enum { DATABASE_ID_SIZE = 33 };

/* Identity and age of a database: two copies of one database differ in `revision`. */
struct store_stamp {
        char database[DATABASE_ID_SIZE]; /* 32 hexadecimal digits, random; "": none */
        uint64_t revision;               /* of the last durable change */
};

/* What makes records durable. `context` belongs to the backend. All functions return 0 or -errno; on failure
 * nothing has changed. */
struct device_backend {
        const char *name;
        /* Call `each` for every stored record, in any order; `document` is the spec as JSON text. The record has no spec and no
         * `quarantine`, also where its stores cannot be read. All stays the backend's. */
        int (*load)(void *context,
                int (*each)(void *userdata, const struct device_record *record, const char *document),
                void *userdata, struct store_stamp *ret);
        /* Write the record (insert or replace), the store's revision and the event (NULL: none) in one
         * transaction. */
        int (*save)(void *context, const struct device_record *record, const char *document,
                uint64_t revision, const struct device_event *event);
        int (*erase)(void *context, const char *name, uint64_t revision, const struct device_event *event);
        /* Write the actions of a record that is stored, as JSON text, with revision and event. NULL: they are not kept. */
        int (*save_actions)(void *context, const char *name, const char *actions, uint64_t revision,
                const struct device_event *event);
        /* Write only the store's revision. */
        int (*save_revision)(void *context, uint64_t revision);
        /* Call `each` for every stored event, in any order. */
        int (*load_events)(void *context, int (*each)(void *userdata, const struct device_event *event),
                void *userdata, uint64_t *ret_compacted);
        /* Write the events (insert, or replace by first_revision) and delete those with a revision up to
         * `compacted`, and those of tenants up to their floors, in one transaction. */
        int (*save_events)(void *context, const struct device_event *const *events, size_t count,
                uint64_t compacted, const struct event_floors *floors);
        /* 0; -ENOLINK: what is written is not kept, as the database was deleted or moved away; other -errno: it is
         * not known. May block for ever. NULL: 0. */
        int (*check)(void *context);
        void (*close)(void *context);
};

/* Open STATE_DIR/ublkd.db; create or migrate it if needed. Return 0 and a context for `*ret_backend`; or
 * -errno with one problem: not permitted, disk full, newer database, corrupt, in use. */
int store_sqlite_open(const char *state_dir, const struct device_backend **ret_backend, void **ret_context,
        struct problem_list *problems);
/* Open a backend that stores nothing. For tests and fuzzers: ublkd itself always has a database. Return 0. */
int store_memory_open(const struct device_backend **ret_backend, void **ret_context);

enum store_event_kind {
        STORE_SPEC,    /* created, or its spec changed */
        STORE_INTENT,  /* deleting, recover_requested, restart, stop or hold changed */
        STORE_STATUS,  /* the status changed */
        STORE_ADOPTED, /* the record comes from the runtime directory: there may be a disk and a worker */
        STORE_NOTED,   /* an event alone, or a change of an action (store_actions.h) */
        STORE_REMOVED, /* the record was removed; event->record is NULL */
        _STORE_EVENT_MAX
};

struct store_event {
        enum store_event_kind kind;
        const char *name;
        const char *uid;
        uint64_t revision;
        const struct device_record *record;
        const struct device_event *event; /* of this change; NULL: it makes none */
};

typedef void (*store_subscriber)(void *userdata, const struct store_event *event);

struct device_store;

/* Create a store and load all records. A record that cannot be parsed is quarantined. Takes over the context of
 * the backend, also on failure. Return 0 or -errno. */
int device_store_new(const struct device_backend *backend, void *context, struct device_store **ret);
/* Create the state directory if it is missing, not those above it, and the store with its database. Return 1: the
 * directory was created; 0: it was there; or -errno, with one problem where the state directory or the database is the
 * cause. */
int device_store_open(const char *state_dir, struct device_store **ret, struct problem_list *problems);
struct device_store *device_store_free(struct device_store *store);

/* Ask the backend whether it keeps what is written: see struct device_backend. May block for ever, so call it
 * in a process apart (its copy of the store will do), not on the loop. */
int device_store_check(const struct device_store *store);
/* Return true if the last write, or a later device_store_set_gone(), found that the database was deleted or moved
 * away. Makes no system call. */
bool device_store_is_gone(const struct device_store *store);
/* Set what device_store_check() has found in the process apart. */
void device_store_set_gone(struct device_store *store, bool gone);
/* Return the revision of the last change or event. It also increases across a restart of ublkd. */
uint64_t device_store_revision(const struct device_store *store);
/* Return the stamp of the database as it is on disk. Valid as long as the store. */
const struct store_stamp *device_store_stamp(const struct device_store *store);
size_t device_store_count(const struct device_store *store);
/* Return the device called `name`, or NULL. */
const struct device_record *device_store_get(const struct device_store *store, const char *name);
/* Return the device with this uid, or NULL. */
const struct device_record *device_store_find_uid(const struct device_store *store, const char *uid);
/* Return the record after `name` (NULL: the first) in alphabetical order, or NULL at the end. */
const struct device_record *device_store_next(const struct device_store *store, const char *name);
/* Return the record after `record`, which is in the store, without a search; NULL at the end. */
const struct device_record *device_store_after(const struct device_record *record);
/* Iterate in alphabetical order. The body must not remove `record`. */
#define DEVICE_STORE_FOREACH(record, store)                                                                  \
        for (const struct device_record *record = device_store_next(store, NULL); record;                    \
                record = device_store_after(record))

/* Return the first device of a tenant after `name` (NULL: the first of all) in alphabetical order, or NULL. It looks at
 * O(log n) devices, also where others have many. */
const struct device_record *device_store_next_of(
        const struct device_store *store, const char *tenant, const char *name);
/* Return the device of the same tenant after `record`, which is in the store and has one, without a search; NULL at the end. */
const struct device_record *device_store_after_of(const struct device_record *record);

/* Return the next device after `name` (NULL: the first) whose file system is mounted, in alphabetical order; NULL at the
 * end. */
const struct device_record *device_store_next_mounted(const struct device_store *store, const char *name);
/* Iterate over those alone. The body may take the mount from `record`. */
#define DEVICE_STORE_FOREACH_MOUNTED(record, store)                                                          \
        for (const struct device_record *record = device_store_next_mounted(store, NULL); record;            \
                record = device_store_next_mounted(store, record->name))

/* Return the device that has `number`, or NULL. */
const struct device_record *device_store_of_number(const struct device_store *store, int number);
/* Return the device other than `name` that has `number` or whose spec asks for it, or NULL. */
const struct device_record *device_store_number_owner(
        const struct device_store *store, int number, const char *name);
/* Find the lowest number from `from` on that no device other than `name` has or asks for. Return 0, or -ENOSPC:
 * none is free. */
int device_store_free_number(const struct device_store *store, int from, const char *name, int *ret);

/* What the devices of tenants have. A device counts until its record is removed, with the size of its spec. */
struct store_usage {
        uint64_t devices;
        uint64_t unreadable; /* those whose spec cannot be read */
        uint64_t bytes;      /* of the others: their sizes, and what their targets keep */
};

/* Return what the devices of the users from `first` to `last` have, beside the one called `except`. Looks at O(log n)
 * devices. */
struct store_usage device_store_usage(
        const struct device_store *store, uid_t first, uid_t last, const char *except);

enum put_outcome { PUT_CREATED, PUT_REPLACED, PUT_UNCHANGED };

/* Store `spec` (taken over only on success). Return 0; -EEXIST: mode is PUT_CREATE and the device has another
 * spec, or a file would take the device of a client; -ESTALE: a precondition does not hold; -EBUSY: the device is
 * being removed; -EADDRINUSE: `id` belongs to another device; -EUCLEAN: the record is not current; -ETXTBSY: it is
 * mounted, and users could write to it then; -EPERM: a file owns the device; -ENOSPC or another -errno of the backend.
 * On failure nothing is changed, and *problems says why. */
int device_store_put(struct device_store *store, struct device_spec *spec,
        const struct put_condition *condition, const struct device_record **ret,
        enum put_outcome *ret_outcome, struct problem_list *problems);

/* Mark the device for removal. force: even if the disk has openers. Return 0 (also if it was marked), -ENOENT,
 * or -errno of the backend. */
int device_store_request_delete(struct device_store *store, const char *name, bool force);
/* Mark the device for removal, because the file that described it is gone. Return as above. */
int device_store_withdraw(struct device_store *store, const char *name);
/* Set what the file of the device says of it. trouble: why it is not applied, one sentence; NULL: it is. A change
 * makes an event. Not durable. Return 0, -ENOENT or -ENOMEM. */
int device_store_set_source_state(
        struct device_store *store, const char *name, enum source_state state, const char *trouble);
/* Request a recovery. Return 0, -ENOENT, or -errno of the backend. */
int device_store_request_recover(struct device_store *store, const char *name);

/* Request another worker than the one that serves now, and a recovery. A disk that cannot outlive its worker
 * (onCrash none) is recreated. accept: the administrator accepts the loss of acknowledged data that the status
 * shows now. Return 0, -ENOENT, or -errno of the backend. */
int device_store_request_restart(struct device_store *store, const char *name, bool accept);

/* Request another worker, because the one that serves runs another version of its program. Return as above. */
int device_store_request_upgrade(struct device_store *store, const char *name);

/* Take the disk away until the next boot, or until device_store_request_start(); the spec stays. A start of a
 * device that is not stopped ends its back-off. Both return 0, also if nothing changes; -ENOENT; or -errno of the
 * backend. */
int device_store_request_stop(struct device_store *store, const char *name);
int device_store_request_start(struct device_store *store, const char *name);

/* Accept the store of status.backing.found in place of the store that the disk was created on, as the
 * administrator asked, and request a recovery. Return 0; -ENOENT; -ESTALE: `identity` is not the store that was
 * found; or -errno of the backend. */
int device_store_accept_backing(struct device_store *store, const char *name, const char *identity);
/* The same of a disk with a list of stores, for the one at `pointer` of the spec (status.stores): the others must still be those that
 * the disk was created on. -EXDEV: what was found is the store of another place of the same disk. */
int device_store_accept_listed(
        struct device_store *store, const char *name, const char *pointer, const char *identity);
/* Add a device with the uid, generation, epoch and number of `record`, or replace the record with the same uid,
 * which keeps its name. `text` is the spec; both are copied. The caller has checked that `name` is free or
 * belongs to the same uid. Another device with the same number and no disk gets another number. Return 0;
 * -EINVAL: the spec is invalid; or -errno of the backend. */
int device_store_adopt(struct device_store *store, const struct device_record *record, const char *text,
        const char *name, const struct device_record **ret);
/* Set record->age, with a status and an event that explain it. Return 0, -ENOENT or -ENOMEM. */
int device_store_set_age(struct device_store *store, const char *name, enum record_age age);

/* Ask the reconciler to try the device again at once. status.observed_asked shows when the status is a result of
 * this try and not of an earlier one. Writes nothing and makes no event. Return 0 or -ENOENT. */
int device_store_try_again(struct device_store *store, const char *name);

/* For the reconciler. Each returns 0, -ENOENT, or -errno of the backend, unless it says otherwise. */
/* Refuse the restart that was requested last: neither this supervisor nor a later one does it. */
int device_store_refuse_restart(struct device_store *store, const char *name);
int device_store_remove(struct device_store *store, const char *name);
int device_store_assign_number(struct device_store *store, const char *name, int number);
/* Record the stores that a disk with a list of them is created on, in the order of the tree; one that is empty stays as it is. */
int device_store_set_listed(struct device_store *store, const char *name,
        const struct backing_identity *identities, unsigned count, const char *boot);
/* Record the store that the disk is created on. boot: the boot id. */
int device_store_set_backing(struct device_store *store, const char *name,
        const struct backing_identity *identity, const char *boot);
/* Record the file system that ublkd makes on the disk. note: filesystem_to_note(). */
int device_store_set_filesystem(struct device_store *store, const char *name, const char *note);
/* Note in the record that a holder wants the file system to stay mounted. Return 1; 0: it was noted before; -ENOENT;
 * -ENOSPC: MOUNT_HOLDERS_MAX want it; or -errno of the backend. */
int device_store_hold_mount(struct device_store *store, const char *name, const char *holder);
/* Note that a holder (NULL: all of them) wants it no more. Return how many want it now; -ENOENT; or -errno of the backend. */
int device_store_release_mount(struct device_store *store, const char *name, const char *holder);
/* Set where the file system is mounted; "": nowhere. Not durable. Return 0 or -ENOENT. */
int device_store_set_mount(struct device_store *store, const char *name, const char *path);
/* Set what is under way with the mount: the disk is not given to users meanwhile, and what goes is not delivered. A mount
 * goes until no copy of it is left that ublkd can find. Not durable. */
void device_store_set_mount_change(struct device_store *store, const char *name, enum mount_change change);
/* Record whether a manual device was Live in this boot: then it is held when it loses its worker (see
 * plan_wish). Also clears recover_requested, which is done or has no effect any more. */
int device_store_set_held(struct device_store *store, const char *name, bool held);
/* Set the status (copied, not durable). Announce STORE_STATUS if it differs from the last one. Return 0, -ENOENT
 * or -ENOMEM. */
int device_store_set_status(struct device_store *store, const char *name, const struct device_status *status);

/* Add an event of the device (device_event.h) and announce STORE_NOTED. Not durable before
 * device_store_save_events(). Return 0 or -ENOENT; on ENOMEM the event is lost. */
int device_store_note(struct device_store *store, const char *name, enum event_type type,
        enum condition_reason reason, const char *format, ...) _printf_(5, 6);
/* The same for an event that repeats no earlier one of its kind. */
int device_store_note_apart(struct device_store *store, const char *name, enum event_type type,
        enum condition_reason reason, const char *message);
/* Add an event of a disk without a device, as device_store_note(): the event's device is "/dev/ublkbN", its
 * uid is all zeros, and the announced record is NULL. On ENOMEM the event is lost. */
void device_store_note_disk(struct device_store *store, int number, enum event_type type,
        enum condition_reason reason, const char *message);
/* Return the events of all devices. The store itself adds an event for each change of a spec, of an intent, and
 * of the phase or reason of a status, with the revision of the change. Valid as long as the store. */
const struct event_log *device_store_events(const struct device_store *store);
/* Say which tenants count together (event_log.h); again when that may have changed. */
void device_store_set_accounts(struct device_store *store, account_of_user first, void *userdata);
/* Write the events that were not written with a record, and delete the compacted ones. Return 0, or -errno: the
 * events stay in memory and are written with the next ones. */
int device_store_save_events(struct device_store *store);

/* Have `callback` called after each change, in the order of the subscriptions. It must not change the store.
 * Return 0 or -ENOMEM. */
int device_store_subscribe(struct device_store *store, store_subscriber callback, void *userdata);
void device_store_unsubscribe(struct device_store *store, store_subscriber callback, void *userdata);
