/* SPDX-License-Identifier: MIT */
/* Reads the kernel's list of swap areas. */
#include "ublkd/disks/swap_areas.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/disks/disk_name.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS_MAX = 8 }; /* of disks upon disks */

struct search {
        const char *sys;
        void (*found)(void *userdata, int number);
        void *userdata;
};

/* A disk that cannot be read has gone meanwhile. */
static void follow(const struct search *search, const char *name, unsigned layers)
{
        _cleanup_closedir_ DIR *slaves = NULL;
        int number = disk_name_number(name);
        const struct dirent *entry;
        char path[PATH_MAX];

        if (number >= 0)
                search->found(search->userdata, number);
        if (number >= 0 || layers == LAYERS_MAX
                || snprintf(path, sizeof(path), "%s/class/block/%s/slaves", search->sys, name)
                           >= (int)sizeof(path))
                return;
        slaves = opendir(path);
        while (slaves && (entry = readdir(slaves)))
                if (entry->d_name[0] != '.')
                        follow(search, entry->d_name, layers + 1);
}

/* "/dev/dm-0 partition 524284 0 -2"; a node that was removed since is "/dev/ublkb0\040(deleted)", no name of a disk. */
static void follow_line(const struct search *search, char *line)
{
        size_t length = strcspn(line, " \t\n");
        const char *type = line + length + strspn(line + length, " \t"), *slash;

        if (strncmp(type, "partition", strlen("partition")) != 0)
                return;
        line[length] = '\0';
        slash = strrchr(line, '/');
        if (slash)
                follow(search, slash + 1, 0);
}

int swap_areas_read(FILE *swaps, const char *sys, void (*found)(void *userdata, int number), void *userdata)
{
        const struct search search = {.sys = sys, .found = found, .userdata = userdata};
        _cleanup_free_ char *line = NULL;
        size_t size = 0;

        while (getline(&line, &size, swaps) > 0)
                follow_line(&search, line);
        return feof(swaps) ? 0 : -errno;
}
