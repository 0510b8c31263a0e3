/* SPDX-License-Identifier: MIT */
/* Why the last thing went wrong with a device, in the user's words. */
#include "ublkd/reconcile/managed_device.h"

#include <stdarg.h>
#include <stdio.h>

void device_note_clear(struct managed_device *device)
{
        free(device->note.sentence);
        device->note = (struct trouble_note){};
}

void device_note(struct managed_device *device, enum condition_reason reason, const char *format, ...)
{
        struct trouble_note note = {.reason = reason};
        va_list arguments;

        va_start(arguments, format);
        if (vasprintf(&note.sentence, format, arguments) < 0)
                note.sentence = NULL;
        va_end(arguments);
        device_note_clear(device);
        if (note.sentence)
                device->note = note;
}

void device_tell(const struct managed_device *device, enum event_type type, enum condition_reason reason,
        const char *format, ...)
{
        char sentence[EVENT_MESSAGE_MAX];
        va_list arguments;

        va_start(arguments, format);
        (void)vsnprintf(sentence, sizeof(sentence), format, arguments);
        va_end(arguments);
        (void)device_store_note(device->reconciler->config.store, device->name, type, reason, "%s", sentence);
}
