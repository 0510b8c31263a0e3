/* SPDX-License-Identifier: MIT */
/* One device as the store keeps it, and operations on it without the other records. */
#pragma once

#include "ublkd/backing/backing.h"
#include "ublkd/model/device_action.h"
#include "ublkd/model/device_spec.h"
#include "ublkd/model/device_status.h"
#include "ublkd/model/filesystem.h"
#include "ublkd/model/mount_holders.h"
#include "ublkd/model/tenant.h"
#include "ublkd/store/record_stores.h"

enum { UID_TEXT_SIZE = 37, MOUNT_PATH_SIZE = 192 };
_Static_assert((int)UID_TEXT_SIZE == (int)RECORD_BOOT_SIZE, "the id of a boot is written as a uid is");

/* How a record compares with its copy in the runtime directory: see record_keeper.h. */
enum record_age {
        RECORD_CURRENT,
        RECORD_OUTDATED, /* the runtime directory has a newer record */
        RECORD_REMOVED,  /* the device was removed after this database was copied */
        _RECORD_AGE_MAX
};

/* What the file that owns a device says of it. */
enum source_state {
        SOURCE_APPLIED, /* its spec is that of the device */
        SOURCE_INVALID, /* the file cannot be read or is invalid: the device keeps its last good spec */
        SOURCE_REFUSED, /* it has another spec, which cannot be applied now */
        SOURCE_GONE,    /* it has no spec of the device any more, and the disk cannot be removed yet */
        _SOURCE_STATE_MAX
};

/* What is under way with the mount of its file system. */
enum mount_change { MOUNT_STAYS, MOUNT_COMES, MOUNT_GOES };

/* Owned by the store, and valid until the next call that changes the store. Read-only outside the store. */
struct device_record {
        char *name;
        char uid[UID_TEXT_SIZE];  /* UUID, lower case */
        char tenant[TENANT_SIZE]; /* who owns the device; "": the administrators of the host */
        uint64_t generation;      /* +1 for every change of the spec; the ETag */
        uint64_t revision;        /* of the store, at the last change of this record */
        uint64_t stored_revision; /* of the store, at the last change of this record that is durable */
        uint16_t epoch;           /* +1 for every change that needs a new kernel disk */
        uint32_t restart;         /* +1 for every POST …/restart; workers of an older one are replaced */
        uint32_t restart_refused; /* the last restart that was refused; 0: none */
        /* Not durable: the faults that the administrator accepts with the restart `accepted_with`. */
        struct device_faults accepted;
        uint32_t accepted_with;
        int number;                      /* of /dev/ublkbN; -1: none yet */
        bool deleting;                   /* ublkd removes the disk, and then the record */
        bool forced;                     /* the same, even if the disk has openers */
        uint64_t asked;                  /* +1 for each request to try again at once; not durable */
        bool recover_requested;          /* POST …/recover came; cleared when Live */
        char held_boot[UID_TEXT_SIZE];   /* boot id in which a manual device was Live, or "" */
        bool stopped;                    /* POST …/stop: no disk in this boot, until POST …/start */
        bool temporary;                  /* the device belongs to the boot in which it was stored */
        bool expired;                    /* not durable: it does, and that boot is over */
        uint64_t created_at;             /* CLOCK_REALTIME, microseconds */
        struct backing_identity backing; /* of the store that its disk was last created on; empty: none yet */
        char backing_boot[UID_TEXT_SIZE];       /* boot id in which ublkd read it */
        struct record_stores *stores;           /* the same of a disk with a list of stores; NULL: none yet */
        char filesystem[FILESYSTEM_NOTE_SIZE];  /* that ublkd makes: filesystem_of_note() */
        char mount[MOUNT_PATH_SIZE];            /* not durable: where ublkd has mounted it; "": nowhere */
        enum mount_change mount_change;         /* not durable */
        char mount_holders[MOUNT_HOLDERS_SIZE]; /* who wants it to stay: mount_holders.h */
        struct device_actions *actions;         /* that clients have started; NULL: none */
        struct device_spec *spec;               /* NULL: quarantined, see `quarantine` */
        char *quarantine;                       /* why the stored record cannot be used, or NULL */
        struct device_status status;            /* not durable */
        char *source;                   /* path of the file that owns the device; NULL: a client made it */
        enum source_state source_state; /* not durable; of `source` */
        char *source_trouble;           /* not durable: why it is not SOURCE_APPLIED, one sentence; or NULL */
        enum record_age age; /* not durable; ublkd does nothing with a device that is not current */
};

/* Return what the disk was last created on, of the stores of its spec the one with that number; empty: none yet. *ret_boot: id of the
 * boot in which ublkd read it; NULL is fine. */
const struct backing_identity *device_record_backing(
        const struct device_record *record, unsigned number, const char **ret_boot);

/* Return whether its disk has its number. The disk of an outdated record may be known to have another one. */
static inline bool device_record_disk_has_number(const struct device_record *record)
{
        return record->status.disk && record->status.number == record->number;
}

/* Return whether the device is to have a disk: its spec enables it, and no client has stopped it in this boot. */
static inline bool device_record_enabled(const struct device_record *record)
{
        return record->spec && record->spec->options.enabled && !record->stopped;
}

/* The preconditions of a put. */
enum put_mode { PUT_CREATE, PUT_CREATE_OR_REPLACE };
struct put_condition {
        enum put_mode mode;
        bool must_not_exist;       /* If-None-Match: * */
        uint64_t match_generation; /* If-Match, 0: any */
        bool match_any;            /* If-Match: * */
        const char *source;        /* path of the file that the spec comes from; NULL: of a client */
        const char *tenant;        /* of a new device; NULL: it belongs to the administrators */
};

/* Return what the record says about the disk of the device. */
struct disk_now device_record_disk(const struct device_record *record);

/* Return the device as the API shows it (name, uid, generation, spec, status), or NULL on ENOMEM. The caller
 * frees it. */
cJSON *device_record_to_json(const struct device_record *record, enum reader reader);

/* ---- for the store, and for files that read records which are not in it ---- */

/* Return the time in CLOCK_REALTIME microseconds. */
uint64_t device_record_now(void);

/* Fill `ret` for a new device: name, uid, generation, epoch, status. Return 0 or -errno. The caller frees it
 * with device_record_clear(). */
int device_record_new(const struct device_spec *spec, struct device_record *ret);

/* Set the status of a new device that ublkd has not looked at yet. Return 0 or -ENOMEM. */
int device_record_explain_pending(struct device_record *record);
/* Set the status of a device of an earlier ublkd that this one has not looked at yet: it may have a disk.
 * Return 0 or -ENOMEM. */
int device_record_explain_unseen(struct device_record *record);

/* Set record->spec from the stored JSON text. Quarantine the record if the text is not a valid spec. Return 0
 * in both cases, or -ENOMEM. */
int device_record_parse(struct device_record *record, const char *text);

/* Quarantine a record with an invalid column, and replace the value (by a new uid, no number), so that the
 * record can be shown, replaced and deleted. Call it after device_record_parse(). Return 0 in both cases;
 * -ENOMEM; or -errno of the random numbers. */
int device_record_sanitize(struct device_record *record);

/* Quarantine a record. why: a clause. Return 0 or -ENOMEM. */
int device_record_quarantine(struct device_record *record, const char *why);

/* Explain in `status` why the record is quarantined. Return 0 or -ENOMEM. */
int device_record_explain_quarantine(const struct device_record *record, struct device_status *status);

/* Explain in `status` why ublkd does nothing with a record that is not current. Return 0 or -ENOMEM. */
int device_record_explain_age(const struct device_record *record, struct device_status *status);

/* Free what the record owns. */
void device_record_clear(struct device_record *record);

/* Return whether only the file of the device may change its spec, and remove it. After the file has gone, clients
 * may. */
static inline bool device_record_is_owned(const struct device_record *record)
{
        return record->source && record->source_state != SOURCE_GONE;
}
/* Return whether `source` (NULL: a client) is the source of the record. */
bool device_record_has_source(const struct device_record *record, const char *source);
/* Add the problem that a file owns the device. Return -EPERM. */
int device_record_refuse_owned(const struct device_record *record, struct problem_list *problems);

/* Check `condition` against `record` (NULL: no such device). Return 0, or -ESTALE with one problem. */
int device_record_check(const struct device_record *record, const struct put_condition *condition,
        struct problem_list *problems);

/* Request another worker, as device_store_request_restart() does. */
void device_record_restart(struct device_record *record);

/* Write the id of this boot as text. Return 0 or -errno. */
int device_record_boot(char ret[static UID_TEXT_SIZE]);

/* Return how many holders want the file system of the device to stay mounted. */
size_t device_record_mount_holders(const struct device_record *record);

/* Return the time of the last change between ready and not ready, in CLOCK_REALTIME microseconds. */
uint64_t device_record_transition_time(const struct device_status *from, const struct device_status *to);
