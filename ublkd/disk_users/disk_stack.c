/* SPDX-License-Identifier: MIT */
/* Finds what the kernel has built on disks, in /sys. */
#include "ublkd/disk_users/disk_stack.h"

#include "ublkd/base/file_io.h"
#include "ublkd/disks/disk_name.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct stack {
        const char *sys;
        int (*found)(void *userdata, int number, const char *phrase);
        void *userdata;
};

static void globfree_pointer(glob_t *paths)
{
        globfree(paths);
}

/* Stop glob() at an unreadable directory: it does not count as empty. */
static int is_failure(const char *path _unused_, int error)
{
        return error != ENOENT && error != ENODEV;
}

/* Call `each` for every path below /sys that matches the pattern. */
static int for_each_path(const struct stack *stack, const char *pattern,
        int (*each)(const struct stack *stack, const char *path, const void *data), const void *data)
{
        _cleanup_(globfree_pointer) glob_t paths = {};
        char full[PATH_MAX];
        int n = snprintf(full, sizeof(full), "%s/%s", stack->sys, pattern), r;

        if (n < 0 || (size_t)n >= sizeof(full))
                return -ENAMETOOLONG;
        r = glob(full, GLOB_NOSORT, is_failure, &paths);
        if (r != 0)
                return r == GLOB_NOSPACE ? -ENOMEM : r == GLOB_NOMATCH ? 0 : -EIO;
        r = 0;
        for (size_t i = 0; r >= 0 && i < paths.gl_pathc; i++)
                r = each(stack, paths.gl_pathv[i], data);
        return r;
}

/* Return part `up` of `path`, counted from its end; truncates `path`. */
static const char *part_of(char *path, unsigned up)
{
        for (unsigned i = 0; i < up; i++)
                *strrchr(path, '/') = '\0';
        return strrchr(path, '/') + 1;
}

/* ---- holders: dm, md, bcache, drbd ---- */

/* "…/ublkb4/holders/dm-0", "…/ublkb4/ublkb4p1/holders/md127". */
static int add_holder(const struct stack *stack, const char *path, const void *data _unused_)
{
        char phrase[NAME_MAX + 32], copy[PATH_MAX];

        snprintf(phrase, sizeof(phrase), "part of /dev/%s", strrchr(path, '/') + 1);
        snprintf(copy, sizeof(copy), "%s", path);
        return stack->found(stack->userdata, disk_name_number(part_of(copy, 2)), phrase);
}

static int find_holders(const struct stack *stack)
{
        int r = for_each_path(stack, "block/ublkb*/holders/*", add_holder, NULL);

        return r < 0 ? r : for_each_path(stack, "block/ublkb*/ublkb*p[0-9]*/holders/*", add_holder, NULL);
}

/* ---- backing files ---- */

/* An attribute with the path of a backing file. */
struct backing {
        const char *pattern; /* below /sys */
        const char *words;   /* before the name of the object */
        unsigned up;         /* the part of the attribute's path that is this name: 1 is its folder */
        bool may_be_link;    /* the path is as the administrator wrote it, links unresolved */
};

static const struct backing backings[] = {
        {.pattern = "block/loop*/loop/backing_file", .words = "backing /dev/", .up = 2},
        {.pattern = "block/zram*/backing_dev", .words = "backing /dev/", .up = 1},
        {.pattern = "kernel/config/nvmet/subsystems/*/namespaces/*/device_path",
         .words = "exported by the NVMe target as ",
         .up = 3,
         .may_be_link = true},
        {.pattern = "kernel/config/target/core/*/*/udev_path",
         .words = "exported by the SCSI target as ",
         .up = 1,
         .may_be_link = true},
};

/* Return 1; 0: the attribute has no path, or was removed meanwhile; -errno. */
static int read_path(const char *attribute, char path[static PATH_MAX])
{
        ssize_t n = read_text_at(AT_FDCWD, attribute, path, PATH_MAX);

        if (n < 0)
                return n == -ENOENT || n == -ENODEV || n == -ENXIO ? 0 : (int)n;
        if (n == PATH_MAX - 1)
                return -ENAMETOOLONG;
        path[strcspn(path, "\n")] = '\0';
        return path[0] == '/';
}

/* Return the number of the disk with the node `path`, or -1. A backing file of a loop device may have the name of
 * a node without being one. */
static int number_of_node(const char *path)
{
        static const char dev[] = "/dev/";
        struct statx info;
        int number = disk_name_number_in_path(path);

        if (number < 0
                || (strncmp(path, dev, strlen(dev)) == 0 && strrchr(path, '/') == path + strlen(dev) - 1))
                return number;
        if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE,
                    &info)
                        < 0
                || !S_ISBLK(info.stx_mode))
                return -1;
        return number;
}

static int add_backed(const struct stack *stack, const char *attribute, const void *data)
{
        const struct backing *backing = data;
        char path[PATH_MAX], resolved[PATH_MAX], copy[PATH_MAX], phrase[2 * NAME_MAX];
        int number, r = read_path(attribute, path);

        if (r <= 0)
                return r;
        if (backing->may_be_link && realpath(path, resolved))
                strcpy(path, resolved);
        number = number_of_node(path);
        if (number < 0)
                return 0;
        snprintf(copy, sizeof(copy), "%s", attribute);
        snprintf(phrase, sizeof(phrase), "%s%.*s", backing->words, NAME_MAX, part_of(copy, backing->up));
        return stack->found(stack->userdata, number, phrase);
}

/* ---- file systems ---- */

/* "…/fs/ext4/ublkb4p1". data: how many parts above the name of the type is. */
static int add_file_system(const struct stack *stack, const char *path, const void *data)
{
        char phrase[2 * NAME_MAX], name[PATH_MAX], type[PATH_MAX];

        snprintf(name, sizeof(name), "%s", path);
        snprintf(type, sizeof(type), "%s", path);
        snprintf(phrase, sizeof(phrase), "a file system (%.*s) that no process has mounted any more",
                NAME_MAX / 2, part_of(type, *(const unsigned *)data));
        return stack->found(stack->userdata, disk_name_number(part_of(name, 0)), phrase);
}

int disk_stack_find_file_systems(
        const char *sys, int (*found)(void *userdata, int number, const char *phrase), void *userdata)
{
        const struct stack stack = {.sys = sys, .found = found, .userdata = userdata};
        int r = for_each_path(&stack, "fs/*/ublkb*", add_file_system, &(const unsigned){1});

        return r < 0 ? r
                     : for_each_path(
                               &stack, "fs/btrfs/*/devices/ublkb*", add_file_system, &(const unsigned){3});
}

int disk_stack_find(
        const char *sys, int (*found)(void *userdata, int number, const char *phrase), void *userdata)
{
        const struct stack stack = {.sys = sys, .found = found, .userdata = userdata};
        int r = find_holders(&stack);

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(backings); i++)
                r = for_each_path(&stack, backings[i].pattern, add_backed, &backings[i]);
        return r;
}
