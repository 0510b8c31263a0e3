/* SPDX-License-Identifier: MIT */
/* The control group of the process that connected to a Unix socket. */
#include "ublkd/peers/peer_cgroup.h"

#include "ublkd/base/cgroup_line.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/peers/peer_process.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A path of PATH_MAX - 1 bytes may be cut off: the kernel does not say so (seen on 6.18). */
static int find_group(FILE *file, char ret[static PEER_CGROUP_SIZE])
{
        _cleanup_free_ char *line = NULL;
        size_t size = 0;

        while (errno = 0, getline(&line, &size, file) > 0) {
                char *path = NULL;
                int r = cgroup_line_find(line, &path);

                if (r == -ENODATA)
                        continue;
                if (r == -ENAMETOOLONG || strlen(path) >= PEER_CGROUP_SIZE - 1)
                        return -ENAMETOOLONG;
                if (r < 0)
                        return r == -EXDEV ? -ENODATA : r;
                strcpy(ret, path);
                return 0;
        }
        return errno > 0 ? -errno : -ENODATA;
}

int peer_cgroup_of(int socket, char ret[static PEER_CGROUP_SIZE])
{
        char path[64], group[PEER_CGROUP_SIZE];
        struct peer_process peer;
        FILE *file;
        bool lives;
        int r = peer_process_open(socket, &peer);

        if (r < 0)
                return r;
        snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)peer.pid);
        file = fopen(path, "re");
        r = file ? find_group(file, group) : -errno;
        if (file)
                (void)fclose(file);
        lives = peer_process_lives(&peer); /* so all of that was about this process */
        peer_process_close(&peer);
        if (r < 0 || !lives)
                return r < 0 && lives ? r : -ESRCH;
        strcpy(ret, group);
        return 0;
}
