/* SPDX-License-Identifier: MIT */
/* The rights of a process of ublkd that enters the namespaces of others. */
#pragma once

#include <linux/capability.h>
#include <stdint.h>
#include <sys/types.h>

#define RIGHT(capability) (UINT64_C(1) << (capability))

/* Set the capabilities that the process may use, and those that are in effect. Return 0 or -errno. */
int rights_set(uint64_t permitted, uint64_t effective);

/* Close the process to those who share its namespaces or its ids, and have it end with its parent. A change of ids
 * resets both. Return 0 or -errno. */
int rights_hide(void);
