/* SPDX-License-Identifier: MIT */
/* The records of all devices: kept in memory, written through to a backend (SQLite, or none in tests) before
 * anything is acknowledged, announced to subscribers after. Runs on the supervisor's loop; nothing suspends.
 */
#pragma once

#include "ublkd/base/backing.h"
#include "ublkd/model/device_spec.h"
#include "ublkd/model/device_status.h"
#include "ublkd/store/event_log.h"

enum { UID_TEXT_SIZE = 37, DATABASE_ID_SIZE = 33 };

/* How a record stands to what the runtime directory says of the same device: see record_keeper.h. */
enum record_age {
        RECORD_CURRENT,
        RECORD_OUTDATED, /* the runtime directory has a newer record */
        RECORD_REMOVED,  /* the device was removed after this database was copied */
        _RECORD_AGE_MAX
};

/* Owned by the store, valid until the next call that changes it. Read only for everyone else. */
struct device_record {
        char *name;
        char uid[UID_TEXT_SIZE];  /* UUID, lower case */
        uint64_t generation;      /* +1 for every change of the spec; the ETag */
        uint64_t revision;        /* of the store, at the last change of this record */
        uint64_t stored_revision; /* of the store, at the last change of this record that is durable */
        uint16_t epoch;           /* +1 for every change that needs a new kernel disk */
        uint32_t restart;         /* +1 for every POST …/restart; workers of an older one are replaced */
        uint32_t restart_refused; /* the last of these that was refused; 0: none */
        /* Not durable: the faults that the administrator accepts, with that restart. */
        struct device_faults accepted;
        uint32_t accepted_with;
        int number;                       /* kernel number given out, -1: none yet */
        bool deleting;                    /* wanted gone; the record goes when the disk is gone */
        bool forced;                      /* and its users do not count */
        uint64_t asked;                   /* +1 for each request to try again at once; not durable */
        bool recover_requested;           /* POST …/recover came; cleared when Live */
        char held_boot[UID_TEXT_SIZE];    /* boot id in which a manual device was Live, or "" */
        uint64_t created_at;              /* CLOCK_REALTIME, microseconds */
        struct backing_identity backing;  /* of the store that its disk was made on last; empty: none yet */
        char backing_boot[UID_TEXT_SIZE]; /* boot id in which that was found out */
        struct device_spec *spec;         /* NULL: quarantined, see `quarantine` */
        char *quarantine;                 /* why the stored record cannot be used, or NULL */
        struct device_status status;      /* not durable */
        enum record_age age;              /* not durable; nothing is done with a device that is not current */
};

/* Whether its disk has its number. The disk of an outdated record may be known to have another one. */
static inline bool device_record_disk_has_number(const struct device_record *record)
{
        return record->status.disk && record->status.number == record->number;
}

/* Which database it is, and how far: two copies of one differ in `revision`. */
struct store_stamp {
        char database[DATABASE_ID_SIZE]; /* 32 hexadecimal digits, random; "": none */
        uint64_t revision;               /* of the last durable change */
};

/* How a record is made durable. `context` is the backend's own. All return 0 or -errno; when one fails
 * nothing has changed. */
struct device_backend {
        const char *name;
        /* Calls `each` for every stored record, in any order; `document` is the spec as JSON text. */
        int (*load)(void *context,
                int (*each)(void *userdata, const struct device_record *record, const char *document),
                void *userdata, struct store_stamp *ret);
        /* Writes the record (insert or replace), the store's revision and the event (NULL: none) in one
         * transaction. */
        int (*save)(void *context, const struct device_record *record, const char *document,
                uint64_t revision, const struct device_event *event);
        int (*erase)(void *context, const char *name, uint64_t revision, const struct device_event *event);
        /* Writes the store's revision alone. */
        int (*save_revision)(void *context, uint64_t revision);
        /* Calls `each` for every stored event, in any order. */
        int (*load_events)(void *context, int (*each)(void *userdata, const struct device_event *event),
                void *userdata, uint64_t *ret_compacted);
        /* Writes the events (insert, or replace by first_revision) and forgets those whose revision is not
         * above `compacted`, in one transaction. */
        int (*save_events)(
                void *context, const struct device_event *const *events, size_t count, uint64_t compacted);
        /* 0; -ENOLINK: what is written is not kept, as the database was deleted or moved away; other -errno: it is
         * not known. May block for ever. NULL: 0. */
        int (*check)(void *context);
        void (*close)(void *context);
};

/* Opens (creates, migrates) STATE_DIR/ublkd.db. Returns 0 and a context for `*ret_backend`; -errno with one
 * problem that says what is wrong (not permitted, disk full, newer database, corrupt, in use). */
int store_sqlite_open(const char *state_dir, const struct device_backend **ret_backend, void **ret_context,
        struct problem_list *problems);
/* Keeps nothing; for tests. */
int store_memory_open(const struct device_backend **ret_backend, void **ret_context);

enum store_event_kind {
        STORE_SPEC,    /* created, or its spec changed */
        STORE_INTENT,  /* deleting, recover_requested, restart or hold changed */
        STORE_STATUS,  /* the status changed */
        STORE_ADOPTED, /* the record came back from the runtime directory: there may be a disk and a worker */
        STORE_NOTED, /* nothing changed, but there is an event to tell: device_store_note(), …_note_disk() */
        STORE_REMOVED, /* the record is gone; event->record is NULL */
        _STORE_EVENT_MAX
};

struct store_event {
        enum store_event_kind kind;
        const char *name;
        const char *uid;
        uint64_t revision;
        const struct device_record *record;
        const struct device_event *event; /* what came of it; NULL: nothing that is worth one */
};

typedef void (*store_subscriber)(void *userdata, const struct store_event *event);

struct device_store;

/* Takes over the backend's context (also on failure) and loads all records; one that cannot be parsed is
 * quarantined, not fatal. 0 or -errno. */
int device_store_new(const struct device_backend *backend, void *context, struct device_store **ret);
struct device_store *device_store_free(struct device_store *store);

/* Asks the backend whether it keeps what is written: see struct device_backend. May block for ever, so call it in a
 * process apart (its copy of the store will do), not on the loop. */
int device_store_check(const struct device_store *store);
/* Return true if the database was deleted or moved away: the last write, or what device_store_set_gone() was told
 * since. Makes no system call. */
bool device_store_is_gone(const struct device_store *store);
/* Sets what device_store_check() has found in the process apart. */
void device_store_set_gone(struct device_store *store, bool gone);
/* Of the last change or event; goes on upwards over a restart. */
uint64_t device_store_revision(const struct device_store *store);
/* Of the database as it is on its disk. Valid as long as the store. */
const struct store_stamp *device_store_stamp(const struct device_store *store);
size_t device_store_count(const struct device_store *store);
/* NULL: no such device. */
const struct device_record *device_store_get(const struct device_store *store, const char *name);
/* The device with this uid, or NULL. */
const struct device_record *device_store_find_uid(const struct device_store *store, const char *uid);
/* The record after `name` in alphabetical order (NULL: the first), or NULL at the end. */
const struct device_record *device_store_next(const struct device_store *store, const char *name);
/* The record after one that is in the store, without a search. */
const struct device_record *device_store_after(const struct device_record *record);
/* In alphabetical order. The body must not remove `record`. */
#define DEVICE_STORE_FOREACH(record, store)                                                                  \
        for (const struct device_record *record = device_store_next(store, NULL); record;                    \
                record = device_store_after(record))

/* The device that has `number`, or NULL. */
const struct device_record *device_store_of_number(const struct device_store *store, int number);
/* The other device that has `number` or asks for it, or NULL. */
const struct device_record *device_store_number_owner(
        const struct device_store *store, int number, const char *name);
/* The lowest number from `from` on that no other device has or asks for. 0, or -ENOSPC: there is none. */
int device_store_free_number(const struct device_store *store, int from, const char *name, int *ret);

/* What must hold for a put. */
enum put_mode { PUT_CREATE, PUT_CREATE_OR_REPLACE };
struct put_condition {
        enum put_mode mode;
        bool must_not_exist;       /* If-None-Match: * */
        uint64_t match_generation; /* If-Match, 0: any */
        bool match_any;            /* If-Match: * */
};
enum put_outcome { PUT_CREATED, PUT_REPLACED, PUT_UNCHANGED };

/* Stores `spec` (taken over on success only). Returns 0; -EEXIST: mode is PUT_CREATE and the name has another
 * spec; -ESTALE: a condition does not hold; -EBUSY: the device of this name is being removed; -EADDRINUSE:
 * its `id` is given out to another device; -EUCLEAN: the record is not current; -ENOSPC and other -errno from
 * the backend. Nothing is changed on failure; *problems says why. */
int device_store_put(struct device_store *store, struct device_spec *spec,
        const struct put_condition *condition, const struct device_record **ret,
        enum put_outcome *ret_outcome, struct problem_list *problems);

/* Marks for removal; 0 also when it was marked. force: also under its users. -ENOENT, or the backend's. */
int device_store_request_delete(struct device_store *store, const char *name, bool force);
/* 0, -ENOENT, or the backend's. */
int device_store_request_recover(struct device_store *store, const char *name);

/* Wants another worker than the one that serves now, and implies a request to recover. A disk that cannot
 * outlive its worker (onCrash none) is to be made anew. accept: the administrator accepts the loss of
 * acknowledged data that the status shows now. 0, -ENOENT, or the backend's. */
int device_store_request_restart(struct device_store *store, const char *name, bool accept);

/* The administrator wants the device to go on with the store that status.backing.found is of, in place of the
 * one that its disk was made on; implies a request to recover. 0; -ENOENT; -ESTALE: no such store was found;
 * or the backend's. */
int device_store_accept_backing(struct device_store *store, const char *name, const char *identity);
/* Adds a device with all that its record says (name, uid, generation, epoch, number), or puts that record in
 * the place of the one with the same uid, which keeps its name. `text` is the spec; both are copied. A device
 * that has the same number and no disk gets another number. The name is free, or that of the same uid. 0, or
 * -errno (-EINVAL: the spec is not valid; the backend's). */
int device_store_adopt(struct device_store *store, const struct device_record *record, const char *text,
        const char *name, const struct device_record **ret);
/* Sets record->age, with the status and an event that explain it. 0, -ENOENT or -ENOMEM. */
int device_store_set_age(struct device_store *store, const char *name, enum record_age age);

/* For the reconciler. 0, -ENOENT, or the backend's. */
/* Have the device tried again at once, as its spec is: who asks is told what that comes to, not what the try
 * before it came to (status.observed_asked). Nothing is written, and no event is made. 0; -ENOENT. */
int device_store_try_again(struct device_store *store, const char *name);
/* The restart that was asked for last is not to be done, now or by a later supervisor. */
int device_store_refuse_restart(struct device_store *store, const char *name);
int device_store_remove(struct device_store *store, const char *name);
int device_store_assign_number(struct device_store *store, const char *name, int number);
/* The store that its disk is made on. boot: the boot id. */
int device_store_set_backing(struct device_store *store, const char *name,
        const struct backing_identity *identity, const char *boot);
/* held: a manual device was Live in this boot, so it is held once it loses its worker (see plan_wish). Clears
 * recover_requested either way: what was asked for has been done, or is moot. */
int device_store_set_held(struct device_store *store, const char *name, bool held);
/* Not durable. Announces STORE_STATUS when it differs from the last. Copies. 0, -ENOENT or -ENOMEM. */
int device_store_set_status(struct device_store *store, const char *name, const struct device_status *status);

/* Keeps an event of something that happened to the device (see device_event.h for reason and message) and
 * announces STORE_NOTED. Not durable before device_store_save_events(). 0 or -ENOENT; lost when memory runs
 * out. */
int device_store_note(struct device_store *store, const char *name, enum event_type type,
        enum condition_reason reason, const char *format, ...) _printf_(5, 6);
/* The same of a disk that belongs to no device: the event's device is "/dev/ublkbN", its uid all zeros, and
 * event->record of what is announced NULL. Lost when memory runs out. */
void device_store_note_disk(struct device_store *store, int number, enum event_type type,
        enum condition_reason reason, const char *message);
/* What happened to all devices. Changes of spec and intent, and of phase or reason of a status, are in it by
 * themselves, with the revision of the change. Valid as long as the store. */
const struct event_log *device_store_events(const struct device_store *store);
/* Writes the events that were not written with a record, and forgets those that are not kept any more. 0 or
 * -errno: they are kept, and written with the next ones. */
int device_store_save_events(struct device_store *store);

/* Subscribers are called after the change, in the order they subscribed; they must not change the store from
 * within. 0 or -ENOMEM. */
int device_store_subscribe(struct device_store *store, store_subscriber callback, void *userdata);
void device_store_unsubscribe(struct device_store *store, store_subscriber callback, void *userdata);

/* What is known of the device's disk. */
struct disk_now device_record_disk(const struct device_record *record);

/* The device as the API shows it: name, uid, generation, spec, status. NULL when out of memory. */
cJSON *device_record_to_json(const struct device_record *record);
