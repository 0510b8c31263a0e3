/* SPDX-License-Identifier: MIT */
/* What the answer to a control command means for the step that sent it, and what the user reads of it. */
#include "ublkd/reconcile/managed_device.h"

#include <string.h>

/* Of the dead worker, or of the number that another disk had. */
static bool awaits_release(const struct managed_device *device, int error)
{
        return error == -EINPROGRESS || (error == -EBUSY && device->action == ACTION_BEGIN_RECOVERY);
}

static void note_failure(struct managed_device *device, int number, int error)
{
        if (awaits_release(device, error) && device->attempt.busy < ATTEMPT_RELEASES)
                return; /* as a rule a matter of milliseconds */
        if (error == -EALREADY)
                return; /* the note about what hangs stays true */
        if (error == -EBUSY && device->action == ACTION_STOP_DEV)
                device_note_holders(device, number, HOLD_BEFORE_STOP);
        else if (error == -ETIME && device->action == ACTION_STOP_DEV)
                device_note_holders(device, number, HOLD_UNKNOWN);
        else if (error == -EEXIST && device->action == ACTION_ADD_DEV)
                device_note(device, REASON_NUMBER_TAKEN,
                        "The kernel number %d is taken by a ublk device that is not ours; give this device "
                        "another \"id\", or wait until that one is gone.",
                        number);
        else if (error == -EBUSY && device->action == ACTION_BEGIN_RECOVERY)
                device_note(device, REASON_REQUESTS_UNDER_WAY,
                        "The last worker is dead, but requests of it for /dev/ublkb%d are still under way in "
                        "the backing store; the disk is recovered as soon as they are done.",
                        number);
        else if (error == -EINPROGRESS)
                device_note(device, REASON_NUMBER_TAKEN,
                        "The kernel number %d belongs to a ublk device that is deleted, and that the kernel "
                        "has not let go of; it is waited for, and another \"id\" would not have to wait.",
                        number);
        else if (error == -ETIMEDOUT)
                device_note(device, REASON_CONTROL_PLANE_HANGS,
                        "The kernel has not answered \"%s\" for /dev/ublkb%d in time; it is "
                        "asked again once that call has ended.",
                        plan_action_to_string(device->action), number);
        else
                device_note(device, REASON_CONTROL_PLANE, "%s for /dev/ublkb%d failed: %s.",
                        plan_action_to_string(device->action), number, strerror(-error));
}

int device_take_answer(struct managed_device *device, const struct device_record *record, int result)
{
        device->call = NULL;
        if (result == -ENODEV && (device->action == ACTION_STOP_DEV || device->action == ACTION_DEL_DEV))
                return 0; /* an earlier one, or somebody else, has taken it away */
        if (result < 0)
                note_failure(device, record->number, result);
        return result;
}

int device_take_answer_for_worker(
        struct managed_device *device, const struct device_record *record, int result)
{
        int r = device_take_answer(device, record, result);

        return r >= 0 && (!device->worker || !record->spec) ? -ECONNRESET : r;
}

void device_on_command_done(void *userdata, int result, const struct kernel_device *kernel _unused_)
{
        struct managed_device *device = userdata;
        const struct device_record *record = device_store_get(device->reconciler->config.store, device->name);

        device_step_done(device, device_take_answer(device, record, result));
}

void device_command_sent(struct managed_device *device, int result, ublk_ctl_done done)
{
        if (result < 0)
                done(device, result, NULL);
}
