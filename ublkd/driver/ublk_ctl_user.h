/* SPDX-License-Identifier: MIT */
/* Commands with the rights of an ordinary user, for the driver's unprivileged mode: ADD_DEV of a process with CAP_SYS_ADMIN makes
 * another disk, and the disk belongs to the user and the group of the process (ublk_ctrl_add_dev() in ublk_drv.c). */
#pragma once

#include <liburing.h>
#include <sys/types.h>

/* Lend the ring these rights: `uid` and `gid`, and no effective capability. This process, which is root and has one thread, has
 * its own rights again when it returns; it ends if it cannot get them back. Return the number of the personality for a
 * submission, to be unregistered; -errno. */
int ctl_user_lend(struct io_uring *ring, uid_t uid, gid_t gid);
