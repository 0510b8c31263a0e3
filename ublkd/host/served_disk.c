/* SPDX-License-Identifier: MIT */
/* Which device a process serves, in words. */
#include "ublkd/host/served_disk.h"

#include "ublkd/store/device_store.h"

#include <stdio.h>

bool served_disk_describe(const void *store, pid_t pid, char *text, size_t size)
{
        DEVICE_STORE_FOREACH (record, store)
                if (record->status.worker.pid == pid) {
                        (void)snprintf(text, size, "the device %s (/dev/ublkb%d, served by process %d)",
                                record->name, record->number, (int)pid);
                        return true;
                }
        return false;
}
