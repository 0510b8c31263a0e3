/* SPDX-License-Identifier: MIT */
/* The ids of another process, as the host counts them. */
#include "ublkd/nodes/process_ids.h"

#include "ublkd/base/file_io.h"
#include "ublkd/kernel/proc_status.h"

#include <fcntl.h>
#include <stdio.h>

enum { STATUS_SIZE = 1024 }; /* the ids stand before what can be long */

int process_ids_read(pid_t pid, uid_t *ret_uid, gid_t *ret_gid)
{
        char path[32], status[STATUS_SIZE];
        int64_t uid, gid;
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        n = read_text_at(AT_FDCWD, path, status, sizeof(status));
        if (n < 0)
                return (int)n;
        uid = proc_status_number(status, "Uid", 1);
        gid = proc_status_number(status, "Gid", 1);
        if (uid < 0 || gid < 0)
                return -EBADMSG;
        *ret_uid = (uid_t)uid;
        *ret_gid = (gid_t)gid;
        return 0;
}
