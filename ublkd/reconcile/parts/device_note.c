/* SPDX-License-Identifier: MIT */
/* The note of the last failure of a device, and the events that report its decisions. */
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/device_openers.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/parts/reconciler_queue.h"

#include <stdarg.h>
#include <stdio.h>

void device_note_clear(struct managed_device *device)
{
        free(device->note.sentence);
        device->note = (struct failure_note){};
}

void device_note_follow(struct managed_device *device)
{
        bool names_openers = device->note.reason == REASON_IN_USE || device->note.reason == REASON_STILL_HELD;

        if (device->view.facts.kernel == KERNEL_ABSENT && names_openers)
                device_note_clear(device);
}

void device_note(struct managed_device *device, enum condition_reason reason, const char *format, ...)
{
        struct failure_note note = {.reason = reason};
        va_list arguments;

        va_start(arguments, format);
        if (vasprintf(&note.sentence, format, arguments) < 0)
                note.sentence = NULL;
        va_end(arguments);
        device_note_clear(device);
        if (note.sentence)
                device->note = note;
}

void device_note_of_owner(struct managed_device *device)
{
        device->note.of_owner = true;
}

static void note_openers(struct managed_device *device)
{
        _cleanup_free_ char *sentence = NULL;

        if (device_openers_explain(&device->openers, &sentence) >= 0)
                device_note(device, device_openers_reason(&device->openers), "%s", sentence);
}

/* Return whether a note may be replaced: a failure of the kernel that was noted meanwhile must stay. */
static bool may_be_replaced(enum condition_reason noted)
{
        return noted == REASON_NONE || noted == REASON_IN_USE || noted == REASON_STILL_HELD;
}

static void on_openers_found(void *userdata)
{
        struct managed_device *device = userdata;

        if (!device_openers_are_of(&device->openers, device->attempt.seen_since)
                || !may_be_replaced(device->note.reason))
                return;
        note_openers(device);
        device_wake(device);
}

void device_note_openers(struct managed_device *device, int number, enum device_hold hold)
{
        if (device_openers_wait(&device->openers, device->env->config.disk_search, number, hold,
                    device->attempt.seen_since, on_openers_found, device))
                note_openers(device);
}

void device_emit(const struct managed_device *device, enum event_type type, enum condition_reason reason,
        const char *format, ...)
{
        char sentence[EVENT_MESSAGE_MAX];
        va_list arguments;

        va_start(arguments, format);
        (void)vsnprintf(sentence, sizeof(sentence), format, arguments);
        va_end(arguments);
        (void)device_store_note(device->env->config.store, device->id.name, type, reason, "%s", sentence);
}

void device_emit_apart(const struct managed_device *device, enum event_type type,
        enum condition_reason reason, const char *sentence)
{
        (void)device_store_note_apart(device->env->config.store, device->id.name, type, reason, sentence);
}
