/* SPDX-License-Identifier: MIT */
/* One record of the store: what device_store.c does to a record without its neighbours. For the store only.
 */
#pragma once

#include "ublkd/store/device_store.h"

/* CLOCK_REALTIME, microseconds. */
uint64_t device_record_now(void);

/* Fills `ret` for a device that is new: name, uid, generation, epoch, status. 0 or -errno; owned by the
 * caller. */
int device_record_new(const struct device_spec *spec, struct device_record *ret);

/* Replaces the status by that of a device which nobody has looked at yet. 0 or -ENOMEM. */
int device_record_explain_pending(struct device_record *record);
/* The same of one that was there before this ublkd: it may have a disk. */
int device_record_explain_unseen(struct device_record *record);

/* Sets record->spec from the stored JSON text, or quarantines the record when the text cannot be used (also
 * 0). -ENOMEM otherwise. */
int device_record_parse(struct device_record *record, const char *text);

/* Quarantines a record that was stored with a column which no device has (0 as well), and gives that column a
 * value with which the record can be shown, replaced and deleted: a new uid, no number. After
 * device_record_parse(). -ENOMEM, or what the random numbers say. */
int device_record_mend(struct device_record *record);

/* Tells in `status` why a quarantined record is not used. 0 or -ENOMEM. */
int device_record_explain_quarantine(const struct device_record *record, struct device_status *status);

/* Tells in `status` why nothing is done with a record that is not current. 0 or -ENOMEM. */
int device_record_explain_age(const struct device_record *record, struct device_status *status);

/* Frees what the record owns. */
void device_record_clear(struct device_record *record);

/* Whether `condition` holds for `record` (NULL: there is none). 0; -ESTALE and one problem. */
int device_record_check(const struct device_record *record, const struct put_condition *condition,
        struct problem_list *problems);

/* Wants another worker than the one that serves now; see device_store_request_restart(). */
void device_record_restart(struct device_record *record);

/* The time of the last change between ready and not ready. */
uint64_t device_record_transition_time(const struct device_status *from, const struct device_status *to);
