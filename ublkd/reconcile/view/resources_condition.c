/* SPDX-License-Identifier: MIT */
/* Reports whether the limits of a worker's control group are in force. */
#include "ublkd/reconcile/view/resources_condition.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_SIZE = 1024 };

static const char retries[] = "; ublkd tries again every 30 s";
/* clang-format off */
static const struct {
        const char *cause, *next;
        const char *retry;
} troubles[_GROUP_TROUBLE_MAX] = {
        [GROUP_NO_HIERARCHY] = {
                .cause = "cgroup v2 is not mounted here",
                .next = "mount it at /sys/fs/cgroup",
                .retry = retries,
        },
        [GROUP_NOT_VISIBLE] = {
                .cause = "the control group of ublkd is not visible in its cgroup namespace",
                .next = "start ublkd in a control group that it can see",
                .retry = retries,
        },
        [GROUP_NO_UNIT] = {
                .cause = "ublkd-workers.service is not active",
                .next = "start it ('systemctl start ublkd-workers.service')",
                .retry = retries,
        },
        [GROUP_NOT_WRITABLE] = {
                .cause = "ublkd may not write to the control group of its workers",
                .next = "give it that right, or delegate the group",
                .retry = retries,
        },
        [GROUP_HAS_REMAINS] = {
                .cause = "processes of an earlier worker with this pid are not dead yet",
                .next = "wait until the disk that they wait for answers",
                .retry = retries,
        },
        [GROUP_FAILED] = {
                .next = "see the log of the kernel",
                .retry = retries,
        },
        [GROUP_UNAVAILABLE] = {
                .cause = "ublkd could not prepare for control groups at its start",
                .next = "see its log, and restart it",
                .retry = "",
        },
};
/* clang-format on */

static bool is_in_force(const struct group_result *result)
{
        if (result->trouble != GROUP_FINE || result->leftover < 0)
                return false;
        for (unsigned i = 0; i < _GROUP_LIMIT_MAX; i++)
                if (result->limits[i] < 0)
                        return false;
        return true;
}

enum condition_reason resources_reason(const struct group_result *result)
{
        return is_in_force(result) ? REASON_RESOURCES_IN_FORCE : REASON_RESOURCES_NOT_IN_FORCE;
}

static void add(char text[static TEXT_SIZE], const char *one, const char *two, const char *three)
{
        size_t used = strlen(text);

        snprintf(text + used, TEXT_SIZE - used, "%s%s%s", one, two, three);
}

#define NO_CONTROLLER(NAME) "the kernel has no " NAME ", or a control group above does not pass it on"

static const char *cause_of(enum group_limit which, int error)
{
        static const char *const no_controllers[_GROUP_LIMIT_MAX] = {
                [GROUP_CPU_WEIGHT] = NO_CONTROLLER("cpu controller"),
                [GROUP_MEMORY_MAX] = NO_CONTROLLER("memory controller"),
                [GROUP_IO_MAX] = NO_CONTROLLER("io controller with io.max"),
                [GROUP_PIDS_MAX] = NO_CONTROLLER("pids controller"),
        };

        if (error == -ENOENT)
                return no_controllers[which];
        if (which == GROUP_IO_MAX && error == -ENODEV)
                return "the backing store lies on no disk whose I/O the kernel can limit";
        return strerror(-error);
}

static int refuse(const struct group_result *result, struct device_condition *ret)
{
        const char *cause = troubles[result->trouble].cause;
        char text[TEXT_SIZE] = "";

        if (result->trouble != GROUP_FINE)
                return device_condition_set(ret, CONDITION_FALSE, REASON_RESOURCES_NOT_IN_FORCE,
                        "Setting the limits of resources failed: %s; %s. The disk is served all the same%s.",
                        cause ? cause : strerror(-result->error), troubles[result->trouble].next,
                        troubles[result->trouble].retry);
        for (unsigned i = 0; i < _GROUP_LIMIT_MAX; i++) {
                enum group_limit which = (enum group_limit)i;

                if (result->limits[i] < 0) {
                        add(text, text[0] ? "; resources." : "resources.", group_limit_field(which),
                                " is not in force: ");
                        add(text, cause_of(which, result->limits[i]), "", "");
                }
        }
        if (result->leftover < 0)
                add(text, text[0] ? "; " : "", "a limit that the spec no longer has is still in force: ",
                        strerror(-result->leftover));
        return device_condition_set(ret, CONDITION_FALSE, REASON_RESOURCES_NOT_IN_FORCE,
                "%s. The disk is served all the same; ublkd tries again every 30 s.", text);
}

int resources_condition(
        const struct group_limits *wanted, const struct group_result *result, struct device_condition *ret)
{
        if (!group_limits_any(wanted) && (!result || result->leftover == 0))
                return 0;
        if (!result)
                return device_condition_set(ret, CONDITION_UNKNOWN, REASON_RESOURCES_PENDING,
                        "Whether all limits of resources are in force is known soon after the disk is Live.");
        if (!is_in_force(result))
                return refuse(result, ret);
        return device_condition_set(ret, CONDITION_TRUE, REASON_RESOURCES_IN_FORCE,
                "All limits of resources are in force for the worker.");
}
