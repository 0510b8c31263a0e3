/* SPDX-License-Identifier: MIT */
/* The note of the last failure of a device, and the events that report its decisions. */
#pragma once

#include "ublkd/model/device_event.h"
#include "ublkd/reconcile/parts/device_openers.h"
#include "ublkd/reconcile/view/failure_note.h"

struct managed_device;

/* Replace the note. On ENOMEM there is none: then the status shows the name of the step. */
void device_note(struct managed_device *device, enum condition_reason reason, const char *format, ...)
        _printf_(3, 4);
/* The note names nothing that is not the owner's, who may read it in full. */
void device_note_of_owner(struct managed_device *device);
void device_note_clear(struct managed_device *device);
/* Drop the note of openers once the disk is gone. */
void device_note_follow(struct managed_device *device);
/* Note that the removal waits for openers of the disk, with their names as soon as they are known. */
void device_note_openers(struct managed_device *device, int number, enum device_hold hold);
/* Report a decision: one event, and so one line of the log. The sentence says what happened and what ublkd does
 * next. */
void device_emit(const struct managed_device *device, enum event_type type, enum condition_reason reason,
        const char *format, ...) _printf_(4, 5);
/* The same for an event that repeats no earlier one of its kind. sentence: whole. */
void device_emit_apart(const struct managed_device *device, enum event_type type,
        enum condition_reason reason, const char *sentence);
