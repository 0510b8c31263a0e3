/* SPDX-License-Identifier: MIT */
/* What the process that reads a partition table gives up before it reads the first byte. */
#pragma once

/* Leave root, its groups and capabilities for a user that owns nothing; allow little memory and CPU time, no new descriptor
 * and no new process; and, on CPUs that call_arch.h knows, only the system calls of reading and answering. Descriptors
 * that are open stay. There is no way back. Return 0; -errno: a wall is missing, do not read. */
int reader_walls_raise(void);
