/* SPDX-License-Identifier: MIT */
/* Why the last thing went wrong with a device, and the events that report its decisions. */
#pragma once

#include "ublkd/model/device_event.h"
#include "ublkd/reconcile/parts/device_holders.h"
#include "ublkd/reconcile/view/trouble_note.h"

struct managed_device;

/* Replace the note. An allocation that fails leaves none: the status then falls back to the step's name. */
void device_note(struct managed_device *device, enum condition_reason reason, const char *format, ...)
        _printf_(3, 4);
void device_note_clear(struct managed_device *device);
/* Its removal waits for those who have the disk: note that, with who they are as soon as that is known. */
void device_note_holders(struct managed_device *device, int number, enum device_hold hold);
/* Report a decision: one event, and so one line of the log. The sentence says what happened and what is done
 * next. */
void device_tell(const struct managed_device *device, enum event_type type, enum condition_reason reason,
        const char *format, ...) _printf_(4, 5);
