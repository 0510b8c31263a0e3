/* SPDX-License-Identifier: MIT */
/* What Linux 7.3 has to refuse every path of a process, for older headers. */
#pragma once

#include <sys/syscall.h>

#ifndef SYS_fchroot
#define SYS_fchroot                                                                                          \
        472 /* include/uapi/asm-generic/unistd.h; the same for every CPU of the table in call_arch.h */
#endif

/* Stands for the root of the file system in which every lookup fails (include/uapi/linux/fcntl.h). */
#ifndef FD_FAILFS_ROOT
#define FD_FAILFS_ROOT (-10004)
#endif
