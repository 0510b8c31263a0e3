/* SPDX-License-Identifier: MIT */
/* The control group of the process that connected to a Unix socket. */
#include "ublkd/peers/peer_cgroup.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/peers/peer_process.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No name of a group has a newline. A path of PATH_MAX - 1 bytes may be cut off: the kernel does not say so
 * (seen on 6.18). */
static int find_group(FILE *file, char ret[static PEER_CGROUP_SIZE])
{
        static const char unified[] = "0::";
        _cleanup_free_ char *line = NULL;
        size_t size = 0;
        ssize_t n;

        while (errno = 0, (n = getline(&line, &size, file)) > 0) {
                const char *path = line + strlen(unified);

                if (strncmp(line, unified, strlen(unified)) != 0)
                        continue;
                if (line[n - 1] != '\n' || strlen(path) >= PEER_CGROUP_SIZE)
                        return -ENAMETOOLONG;
                line[n - 1] = '\0';
                if (*path != '/' || strncmp(path, "/..", strlen("/..")) == 0) /* outside of this namespace */
                        return -ENODATA;
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
