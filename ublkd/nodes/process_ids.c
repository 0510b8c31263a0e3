/* SPDX-License-Identifier: MIT */
/* The ids of another process, as the host counts them. */
#include "ublkd/nodes/process_ids.h"

#include "ublkd/base/cleanup.h"

#include <stdio.h>

int process_ids_read(pid_t pid, uid_t *ret_uid, gid_t *ret_gid)
{
        _cleanup_free_ char *line = NULL;
        _cleanup_fclose_ FILE *status = NULL;
        unsigned uid = 0, gid = 0, found = 0;
        size_t size = 0;
        char path[32];

        snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        status = fopen(path, "re");
        if (!status)
                return -errno;
        while (getline(&line, &size, status) > 0) {
                found += sscanf(line, "Uid: %*u %u", &uid) == 1;
                found += sscanf(line, "Gid: %*u %u", &gid) == 1;
        }
        if (found != 2)
                return -EBADMSG;
        *ret_uid = uid;
        *ret_gid = gid;
        return 0;
}
