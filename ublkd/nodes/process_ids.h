/* SPDX-License-Identifier: MIT */
/* The ids of another process, as the host counts them. */
#pragma once

#include <sys/types.h>

/* Read the user and the group in effect. Return 0; -ENOENT, -ESRCH: there is no such process; -EBADMSG; other -errno. */
int process_ids_read(pid_t pid, uid_t *ret_uid, gid_t *ret_gid);
