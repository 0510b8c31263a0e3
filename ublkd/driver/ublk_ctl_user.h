/* SPDX-License-Identifier: MIT */
/* Commands with the rights of an ordinary user, for the driver's unprivileged mode: ADD_DEV of a process with CAP_SYS_ADMIN makes
 * another disk, and the disk belongs to the user and the group of the process (ublk_ctrl_add_dev() in ublk_drv.c). */
#pragma once

#include <liburing.h>
#include <sys/types.h>

/* Lend the ring these rights: `uid` and `gid`, no other group, and no capability. A process apart takes them, registers them, and
 * ends: this one, which is root and has one thread, never has them, since a process of that user could end or stop it. Waits for
 * two seconds at most. Return the number of the personality, to be unregistered; -ETIME: the process was held up; other -errno. */
int ctl_user_lend(struct io_uring *ring, uid_t uid, gid_t gid);
