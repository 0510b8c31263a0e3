/* SPDX-License-Identifier: MIT */
/* Ends the step that sent a control command, and notes a failure for the status. */
#include "ublkd/reconcile/parts/device_step.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/view/command_failure.h"

/* Return whether the device waits until the driver releases a dead worker's requests, or a number. */
static bool awaits_release(const struct managed_device *device, int error)
{
        return error == -EINPROGRESS || (error == -EBUSY && device->step.action == ACTION_BEGIN_RECOVERY);
}

static void note_failure(struct managed_device *device, int number, int error)
{
        char sentence[COMMAND_FAILURE_MAX];
        enum condition_reason reason;

        if (awaits_release(device, error) && device->attempt.busy < ATTEMPT_RELEASES)
                return; /* normally for milliseconds only */
        if (error == -EALREADY)
                return; /* keep the note about the hanging command */
        if (error == -EBUSY && device->step.action == ACTION_STOP_DEV) {
                device_note_openers(device, number, HOLD_BEFORE_STOP);
                return;
        }
        if (error == -ETIME && device->step.action == ACTION_STOP_DEV) {
                device_note_openers(device, number, HOLD_UNKNOWN);
                return;
        }
        reason = command_failure(device->step.action, error, number, sentence);
        device_note(device, reason, "%s", sentence);
}

void device_step_done(struct managed_device *device, int result)
{
        device->step.done(device, result);
}

int device_take_result(struct managed_device *device, const struct device_record *record, int result)
{
        device->step.call = NULL;
        if (result == -ENODEV
                && (device->step.action == ACTION_STOP_DEV || device->step.action == ACTION_DEL_DEV))
                return 0; /* an earlier command, or another program, has removed it */
        if (result < 0)
                note_failure(device, record->number, result);
        return result;
}

int device_take_result_for_worker(
        struct managed_device *device, const struct device_record *record, int result)
{
        int r = device_take_result(device, record, result);

        return r >= 0 && (!device->process.worker || !record->spec) ? -ECONNRESET : r;
}

void device_on_command_done(void *userdata, int result, const struct kernel_device *kernel _unused_)
{
        struct managed_device *device = userdata;
        const struct device_record *record = device_store_get(device->env->config.store, device->id.name);

        device_step_done(device, device_take_result(device, record, result));
}

void device_command_sent(struct managed_device *device, int result, ublk_ctl_done done)
{
        if (result < 0)
                done(device, result, NULL);
}

uint64_t device_features(const struct managed_device *device)
{
        return device->env->config.host->features & ~device->step.dropped_flags;
}
