/* SPDX-License-Identifier: MIT */
/* The file behind a file on an overlay.
 *
 * The overlay's mount names its layers, and a file has the same path in its layer as in the overlay, unless a
 * directory above it was renamed. What is found there is the one if the kernel reports the same of both: an
 * overlay passes on what its layer reports, but for the numbers of device and inode. */
#include "targets/loop/overlay_layer.h"
#include "ublkd/values/path_text.h"
#include "ublkd/base/fd_path.h"

#include "targets/loop/mount_table.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* ---- the options of the mount ---- */

/* Cuts the next layer out of "a:b:c", where "\:" is a colon of a name. */
static char *take_layer(char **list)
{
        char *layer = *list, *to = layer, *from = layer;

        if (!layer)
                return NULL;
        for (; *from && *from != ':'; from++) {
                if (*from == '\\' && from[1])
                        from++;
                *to++ = *from;
        }
        *list = *from ? from + 1 : NULL;
        *to = '\0';
        return layer;
}

/* The value of "NAME=VALUE" if it has that name, or NULL. */
static char *value_of(char *option, const char *name)
{
        size_t length = strlen(name);

        return strncmp(option, name, length) == 0 && option[length] == '=' ? option + length + 1 : NULL;
}

static int each_of_list(char *list, int (*each)(const char *layer, void *userdata), void *userdata)
{
        char *layer;
        int r = -ENOENT;

        while (r == -ENOENT && (layer = take_layer(&list)))
                if (*layer)
                        r = each(layer, userdata);
        return r;
}

static int each_of_option(
        char *options, bool upper, int (*each)(const char *layer, void *userdata), void *userdata)
{
        char *option;
        int r = -ENOENT;

        while (r == -ENOENT && (option = strsep(&options, ","))) {
                char *one = value_of(option, upper ? "upperdir" : "lowerdir+");
                char *list = upper ? NULL : value_of(option, "lowerdir");

                if (one || list)
                        path_unescape(one ? one : list);
                if (one && *one)
                        r = each(one, userdata);
                else if (list)
                        r = each_of_list(list, each, userdata);
        }
        return r;
}

int overlay_layers_each(char *options, int (*each)(const char *layer, void *userdata), void *userdata)
{
        _cleanup_free_ char *copy = strdup(options);
        int r = copy ? each_of_option(copy, true, each, userdata) : -ENOMEM;

        return r == -ENOENT ? each_of_option(options, false, each, userdata) : r;
}

/* ---- the file ---- */

struct search {
        struct statx wanted;
        const char *path; /* in each layer, relative */
        int found;        /* descriptor */
};

static bool is_same_time(const struct statx_timestamp *one, const struct statx_timestamp *other)
{
        return one->tv_sec == other->tv_sec && one->tv_nsec == other->tv_nsec;
}

static bool is_same_file(const struct statx *one, const struct statx *other)
{
        return one->stx_mode == other->stx_mode && one->stx_uid == other->stx_uid
               && one->stx_gid == other->stx_gid && one->stx_size == other->stx_size
               && one->stx_blocks == other->stx_blocks && is_same_time(&one->stx_mtime, &other->stx_mtime)
               && is_same_time(&one->stx_ctime, &other->stx_ctime)
               && is_same_time(&one->stx_btime, &other->stx_btime);
}

static int look_into(const char *layer, void *userdata)
{
        struct search *search = userdata;
        struct open_how how = {.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
        _cleanup_close_ int directory = -1, fd = -1;
        struct statx info;

        if (*layer != '/') /* relative to where its mounter was */
                return -ENOENT;
        directory = open(layer, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (directory >= 0)
                fd = (int)syscall(SYS_openat2, directory, search->path, &how, sizeof(how));
        if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &info) < 0
                || !is_same_file(&info, &search->wanted))
                return -ENOENT;
        search->found = TAKE_FD(fd);
        return 0;
}

/* Makes of the path of the open file, and of the mount that it was opened on, the path in the overlay. */
static int path_in_overlay(int fd, const struct mount_row *row, char path[static PATH_MAX])
{
        char whole[PATH_MAX];
        const char *rest;
        size_t length = strcmp(row->point, "/") == 0 ? 0 : strlen(row->point);
        ssize_t n;
        int size;

        n = readlink(fd_path(fd).text, whole, sizeof(whole) - 1);
        if (n < 0)
                return -errno;
        whole[n] = '\0';
        rest = whole + length;
        if (strncmp(whole, row->point, length) != 0 || (*rest && *rest != '/'))
                return -ENOENT;
        size = snprintf(path, PATH_MAX, "%s%s", strcmp(row->root, "/") == 0 ? "" : row->root, rest);
        return size > 1 && size < PATH_MAX ? 0 : -ENOENT;
}

int overlay_layer_find(int fd, int *ret)
{
        struct search search = {.found = -1};
        _cleanup_mount_row_ struct mount_row row = {};
        char path[PATH_MAX];
        int r;

        if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID, &search.wanted) < 0)
                return -errno;
        r = mount_table_find_id(search.wanted.stx_mnt_id, &row);
        if (r >= 0)
                r = path_in_overlay(fd, &row, path);
        if (r < 0)
                return r;
        search.path = path + 1;
        r = overlay_layers_each(row.options, look_into, &search);
        if (r >= 0)
                *ret = search.found;
        return r;
}
