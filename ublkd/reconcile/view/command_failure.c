/* SPDX-License-Identifier: MIT */
/* Reason and sentence of a failed control command. */
#include "ublkd/reconcile/view/command_failure.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static enum condition_reason reason_of(enum plan_action action, int error)
{
        if (error == -EINPROGRESS || error == -ESTALE || (error == -EEXIST && action == ACTION_ADD_DEV))
                return REASON_NUMBER_TAKEN;
        if (error == -EBUSY && action == ACTION_BEGIN_RECOVERY)
                return REASON_REQUESTS_UNDER_WAY;
        return error == -ETIMEDOUT ? REASON_CONTROL_PLANE_HANGS : REASON_CONTROL_PLANE;
}

enum condition_reason command_failure(
        enum plan_action action, int error, int number, char ret[static COMMAND_FAILURE_MAX])
{
        enum condition_reason reason = reason_of(action, error);
        const char *what = plan_action_to_string(action);

        if (error == -EINPROGRESS)
                snprintf(ret, COMMAND_FAILURE_MAX,
                        "The kernel number %d belongs to a deleted ublk device that the kernel has not "
                        "released yet; ublkd waits for the release. Another \"id\" avoids the wait.",
                        number);
        else if (reason == REASON_NUMBER_TAKEN)
                snprintf(ret, COMMAND_FAILURE_MAX,
                        "The kernel number %d is taken by a ublk device that does not belong to this ublkd; "
                        "give this device another \"id\", or wait until that one is gone.",
                        number);
        else if (reason == REASON_REQUESTS_UNDER_WAY)
                snprintf(ret, COMMAND_FAILURE_MAX,
                        "The last worker is dead, but its requests for /dev/ublkb%d are still in flight in "
                        "the backing store; ublkd recovers the disk when they have ended.",
                        number);
        else if (error == -EACCES && action == ACTION_ADD_DEV)
                snprintf(ret, COMMAND_FAILURE_MAX,
                        "The driver does not make /dev/ublkb%d: it allows no more disks in its "
                        "unprivileged mode; remove one with \"isolation\": \"kernel\", or raise "
                        "/sys/module/ublk_drv/parameters/ublks_max.",
                        number);
        else if (reason == REASON_CONTROL_PLANE_HANGS)
                snprintf(ret, COMMAND_FAILURE_MAX,
                        "The kernel has not answered \"%s\" for /dev/ublkb%d in time; ublkd asks again when "
                        "that call has returned.",
                        what, number);
        else
                snprintf(ret, COMMAND_FAILURE_MAX, "%s for /dev/ublkb%d failed: %s.", what, number,
                        strerror(-error));
        return reason;
}
