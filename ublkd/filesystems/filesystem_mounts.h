/* SPDX-License-Identifier: MIT */
/* Which devices are mounted where ublkd mounts them, as the kernel shows it: also after a restart of ublkd, and after an
 * unmount by another program. It keeps device_record.mount so. */
#pragma once

#include "ublkd/filesystems/filesystem_wire.h"
#include "ublkd/store/device_store.h"

#include <systemd/sd-event.h>

struct filesystem_mounts;

/* Find the directory of all mounts: beside the runtime directory, which exists, so that a removal of that does not remove what
 * is mounted; without links, as the kernel shows mounts. Return 0; -ENAMETOOLONG; other -errno. */
int filesystem_mounts_place(const char *runtime_dir, char ret[static FILESYSTEM_PATH_SIZE]);
/* Begin to watch the mounts TOP/UID of the devices in `store`, and remove lists of users that a death has left there
 * (mount_users.h). Both outlive the watch. Return 0 or -errno. */
int filesystem_mounts_new(
        sd_event *event, struct device_store *store, const char *top, struct filesystem_mounts **ret);
/* NULL is fine. Return NULL. */
struct filesystem_mounts *filesystem_mounts_free(struct filesystem_mounts *mounts);
/* Look at once. The loop looks soon after each change by itself. */
void filesystem_mounts_look(struct filesystem_mounts *mounts);
