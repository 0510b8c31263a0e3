/* SPDX-License-Identifier: MIT */
/* The conditions of a device beside Ready. Plain data; no I/O.
 *
 * To add one: a value of enum condition_type, its name in device_condition.c, a function in the table of
 * device_report.c, and its sentence in schemas/openapi/devices.json. */
#pragma once

#include "ublkd/base/cleanup.h"
#include "ublkd/model/reason.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

enum condition_type {
        CONDITION_PATH_LEADS_TO_STORE, /* device_path.c */
        CONDITION_DURABLE,             /* device_faults.c */
        CONDITION_BACKING_WHOLE,       /* device_faults.c */
        CONDITION_SPACE,               /* device_space.c */
        CONDITION_STABLE_PATH,         /* stable_path.c */
        _CONDITION_MAX
};

enum condition_status {
        CONDITION_ABSENT, /* it is not shown: there is nothing that it could be about */
        CONDITION_TRUE,
        CONDITION_FALSE,
        CONDITION_UNKNOWN,
        _CONDITION_STATUS_MAX
};

struct device_condition {
        enum condition_status status;
        enum condition_reason reason;
        char *message; /* a sentence; owned; NULL: absent */
        uint64_t
                transition_at; /* CLOCK_REALTIME, microseconds: since when it has this status; 0: not known */
};

struct device_conditions {
        struct device_condition of[_CONDITION_MAX];
};

/* Sets status, reason and message of a condition. 0 or -ENOMEM (unchanged). */
int device_condition_set(struct device_condition *condition, enum condition_status status,
        enum condition_reason reason, const char *format, ...) _printf_(4, 5);

/* Deep copy into `ret` (overwritten, not freed first). 0 or -ENOMEM. */
int device_conditions_copy(const struct device_conditions *from, struct device_conditions *ret);
bool device_conditions_equal(const struct device_conditions *one, const struct device_conditions *other);
void device_conditions_clear(struct device_conditions *conditions);
/* Gives each condition of `to` without a time one: that of `from` if the status is the same, else `now`. */
void device_conditions_set_times(
        const struct device_conditions *from, struct device_conditions *to, uint64_t now);

/* The API's name of a type, of a status. */
const char *condition_type_to_string(enum condition_type type);
const char *condition_status_to_string(enum condition_status status);
/* Appends to a JSON array what the API shows of each condition that is not absent. False: out of memory. */
bool device_conditions_add(const struct device_conditions *conditions, cJSON *array);
