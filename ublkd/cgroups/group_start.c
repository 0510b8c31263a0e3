/* SPDX-License-Identifier: MIT */
/* The start groups of devices with limits. As with the groups of workers, the name says of which pid namespace the ublkd is
 * that has made one (group_tree.c). */
#include "ublkd/cgroups/group_start.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/cgroups/group_tree.h"
#include "ublkd/cgroups/group_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_SIZE = 128 };

#define PREFIX "start-"

static int print_name(const struct group_tree *tree, char name[static NAME_SIZE], const char *uid)
{
        int n = snprintf(name, NAME_SIZE, PREFIX "%s", uid);

        if (n < NAME_SIZE && tree->pid_namespace > 0)
                n += snprintf(name + n, NAME_SIZE - (size_t)n, ".%" PRIu64, tree->pid_namespace);
        return n < NAME_SIZE ? 0 : -ENAMETOOLONG;
}

int group_start_open(const struct group_tree *tree, const char *uid)
{
        char name[NAME_SIZE];
        int r = print_name(tree, name, uid), fd;

        if (r < 0)
                return r;
        fd = openat(tree->fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int group_start_make(const struct group_tree *tree, const char *uid)
{
        char name[NAME_SIZE];
        int r = print_name(tree, name, uid), fd;
        bool made;

        if (r < 0)
                return r;
        made = mkdirat(tree->fd, name, 0755) == 0;
        if (!made && errno != EEXIST)
                return -errno;
        fd = group_start_open(tree, uid);
        if (made)
                group_write_new(fd);
        return fd;
}

int group_start_remove(const struct group_tree *tree, const char *uid)
{
        char name[NAME_SIZE];
        int r = print_name(tree, name, uid);

        if (r < 0)
                return r;
        return unlinkat(tree->fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

static bool is_ours(const struct group_tree *tree, const char *name)
{
        char end[32] = "";
        const char *dot = strchr(name, '.');

        if (tree->pid_namespace > 0)
                snprintf(end, sizeof(end), ".%" PRIu64, tree->pid_namespace);
        return strncmp(name, PREFIX, strlen(PREFIX)) == 0 && strcmp(dot ? dot : "", end) == 0;
}

/* The kernel refuses where a process is. */
void group_start_sweep(const struct group_tree *tree)
{
        int fd = openat(tree->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;

        if (!dir && fd >= 0)
                close_fd(fd);
        while (dir && (entry = readdir(dir)))
                if (is_ours(tree, entry->d_name))
                        (void)unlinkat(tree->fd, entry->d_name, AT_REMOVEDIR);
}

/* ---- on the loop ---- */

static int open_group(const struct group_place *place, const char *uid)
{
        _cleanup_(group_tree_close) struct group_tree tree = {.fd = -1};
        int r = group_tree_open_path(place, &tree);

        return r < 0 ? r : group_start_open(&tree, uid);
}

/* Make the directory of all groups, too, where that is ours. The thread of worker_groups.c enables the other controllers. */
static int make_group(const struct group_place *place, const char *uid)
{
        _cleanup_(group_tree_close) struct group_tree tree = {.fd = -1};
        int r = group_tree_open(place, !place->delegated, &tree);

        if (r < 0)
                return r;
        group_tree_enable(&tree, &(const struct group_limits){}, !place->delegated);
        return group_start_make(&tree, uid);
}

int group_start_open_bounded(
        const struct group_place *place, const char *uid, const struct group_limits *limits)
{
        _cleanup_close_ int group = open_group(place, uid);

        if (group == -ENOENT)
                group = make_group(place, uid);
        if (group < 0)
                return group;
        group_write_no_more_bounds(
                group, limits); /* the spec may have changed since the last worker served */
        return group_write_bounds(group, limits) > 0 ? TAKE_FD(group) : -ENOENT;
}

int group_start_open_events(const struct group_place *place, const char *uid)
{
        _cleanup_close_ int group = open_group(place, uid);
        int fd;

        if (group < 0)
                return group;
        fd = openat(group, "memory.events", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}
