/* SPDX-License-Identifier: MIT */
/* Operations on one record, without the other records of the store. For the store only. */
#pragma once

#include "ublkd/store/device_store.h"

/* Return the time in CLOCK_REALTIME microseconds. */
uint64_t device_record_now(void);

/* Fill `ret` for a new device: name, uid, generation, epoch, status. Return 0 or -errno. The caller frees it
 * with device_record_clear(). */
int device_record_new(const struct device_spec *spec, struct device_record *ret);

/* Set the status of a new device that ublkd has not looked at yet. Return 0 or -ENOMEM. */
int device_record_explain_pending(struct device_record *record);
/* The same for a device of an earlier ublkd: it may have a disk. */
int device_record_explain_unseen(struct device_record *record);

/* Set record->spec from the stored JSON text. Quarantine the record if the text is not a valid spec. Return 0
 * in both cases, or -ENOMEM. */
int device_record_parse(struct device_record *record, const char *text);

/* Quarantine a record with an invalid column, and replace the value (by a new uid, no number), so that the
 * record can be shown, replaced and deleted. Call it after device_record_parse(). Return 0 in both cases;
 * -ENOMEM; or -errno of the random numbers. */
int device_record_sanitize(struct device_record *record);

/* Say in `status` why the record is quarantined. Return 0 or -ENOMEM. */
int device_record_explain_quarantine(const struct device_record *record, struct device_status *status);

/* Say in `status` why ublkd does nothing with a record that is not current. Return 0 or -ENOMEM. */
int device_record_explain_age(const struct device_record *record, struct device_status *status);

/* Free what the record owns. */
void device_record_clear(struct device_record *record);

/* Check `condition` against `record` (NULL: no such device). Return 0, or -ESTALE with one problem. */
int device_record_check(const struct device_record *record, const struct put_condition *condition,
        struct problem_list *problems);

/* Request another worker, as device_store_request_restart() does. */
void device_record_restart(struct device_record *record);

/* Return the time of the last change between ready and not ready, in CLOCK_REALTIME microseconds. */
uint64_t device_record_transition_time(const struct device_status *from, const struct device_status *to);
