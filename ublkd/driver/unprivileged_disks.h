/* SPDX-License-Identifier: MIT */
/* The disks in the driver's unprivileged mode, as each was seen last: of one that was deleted and still has an opener the driver
 * shows nothing. */
#pragma once

#include "ublkd/driver/ublk_ctl.h"

struct unprivileged_disks;

/* Return an empty set; NULL: out of memory. */
struct unprivileged_disks *unprivileged_disks_new(void);
/* Free it. NULL is fine. Return NULL. */
struct unprivileged_disks *unprivileged_disks_free(struct unprivileged_disks *disks);

/* Note what the driver shows of a disk, in whatever mode it is. Return 0 or -ENOMEM. */
int unprivileged_disks_note(struct unprivileged_disks *disks, const struct kernel_device *device);
/* Return whether the disk that was seen last under the number is in that mode. */
bool unprivileged_disks_have(const struct unprivileged_disks *disks, int number);
/* Return the disk as it was seen last, but dead: it was deleted, and its number is not free yet. One that was never seen has
 * the cookie 0, which is of no device. */
struct kernel_device unprivileged_disks_deleted(const struct unprivileged_disks *disks, int number);
