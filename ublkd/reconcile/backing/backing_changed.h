/* SPDX-License-Identifier: MIT */
/* What the note of a device says of a store that is not the one that the disk was created on. */
#pragma once

#include "ublkd/store/device_record.h"

struct managed_device;

/* Note that `found` (not empty) is at the path of the store with that number: both identities, what to do, and last the command that
 * gives up the store of the disk. In a list the store is named by its pointer; one that belongs to another place of the same disk is
 * not to be accepted. */
void backing_changed_note(struct managed_device *device, const struct device_record *record, unsigned number,
        const struct backing_identity *found);
