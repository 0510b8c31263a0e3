/* SPDX-License-Identifier: MIT */
/* The process that looks at a disk, has a program make or check a file system there, and mounts it: ublkd, executed again with
 * FILESYSTEM_PROCESS_OPTION. What it waits for can take as long as the disk does. */
#pragma once

/* Receive an order, look, send what is there, receive a task, carry it out, send a report (filesystem_wire.h). It ends
 * with the supervisor. Return the exit status. */
int filesystem_process_main(void);
