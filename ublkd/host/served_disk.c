/* SPDX-License-Identifier: MIT */
/* Describes the device that a process serves, for people. */
#include "ublkd/host/served_disk.h"

#include "ublkd/store/device_store.h"

#include <stdio.h>

bool served_disk_describe(const void *store, pid_t pid, char *text, size_t size)
{
        DEVICE_STORE_FOREACH (record, store) {
                const struct device_status *status = &record->status;
                char node[32] = "";

                if (status->worker.pid != pid)
                        continue;
                if (status->number >= 0)
                        (void)snprintf(node, sizeof(node), "/dev/ublkb%d, ", status->number);
                (void)snprintf(
                        text, size, "the device %s (%sserved by process %d)", record->name, node, (int)pid);
                return true;
        }
        return false;
}
