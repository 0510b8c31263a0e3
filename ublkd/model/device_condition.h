/* SPDX-License-Identifier: MIT */
/* The conditions of a device beside Ready. Plain data; no I/O.
 *
 * To add one: a value of enum condition_type, its name in device_condition.c, a function in the table of
 * device_report.c, and its sentence in schemas/openapi/devices.json. */
#pragma once

#include "ublkd/base/cleanup.h"
#include "ublkd/model/reason.h"
#include "ublkd/model/tenant_text.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

enum condition_type {
        CONDITION_PATH_LEADS_TO_STORE, /* device_path.c */
        CONDITION_DURABLE,             /* device_faults.c */
        CONDITION_BACKING_WHOLE,       /* device_faults.c */
        CONDITION_SPACE,               /* device_space.c */
        CONDITION_ERROR_FREE,          /* device_errors.c */
        CONDITION_PROGRESS,            /* device_progress.c */
        CONDITION_RESOURCES,           /* device_group.c */
        CONDITION_STABLE_PATH,         /* stable_path.c */
        CONDITION_SWAP_SAFE,           /* swap_condition.c */
        CONDITION_PARTITIONS,          /* device_partitions.c */
        CONDITION_SOURCE,              /* source_condition.c */
        CONDITION_NEEDS_RESTART,       /* device_program.c */
        _CONDITION_MAX
};

enum condition_status {
        CONDITION_ABSENT, /* not shown: the condition does not apply to the device */
        CONDITION_TRUE,
        CONDITION_FALSE,
        CONDITION_UNKNOWN,
        _CONDITION_STATUS_MAX
};

struct device_condition {
        enum condition_status status;
        enum condition_reason reason;
        char *message;          /* a sentence; owned; NULL: absent */
        uint64_t transition_at; /* CLOCK_REALTIME microseconds of the last change of status; 0: unknown */
        uint64_t observed_at;   /* the same, of the look that the message is about; 0: not shown */
};

struct device_conditions {
        struct device_condition of[_CONDITION_MAX];
};

/* Set status, reason and message of a condition. Return 0 or -ENOMEM (unchanged). */
int device_condition_set(struct device_condition *condition, enum condition_status status,
        enum condition_reason reason, const char *format, ...) _printf_(4, 5);

/* Copy deeply into `ret` (overwritten, not freed first). Return 0 or -ENOMEM. */
int device_conditions_copy(const struct device_conditions *from, struct device_conditions *ret);
bool device_conditions_equal(const struct device_conditions *one, const struct device_conditions *other);
void device_conditions_clear(struct device_conditions *conditions);
/* Set the missing times in `to`: the time in `from` if the status is the same, else `now`. CLOCK_REALTIME
 * microseconds. */
void device_conditions_set_times(
        const struct device_conditions *from, struct device_conditions *to, uint64_t now);

/* Return the name in the API. Static strings. */
const char *condition_type_to_string(enum condition_type type);
const char *condition_status_to_string(enum condition_status status);
/* Append each condition that is not absent to a JSON array, as the API shows it to that reader. Return false on ENOMEM. */
bool device_conditions_add(const struct device_conditions *conditions, cJSON *array, enum reader reader);
