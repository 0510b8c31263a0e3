/* What the kernel has built on a disk. */
#include "ublkd/disk_stack.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/disk_name.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct stack {
        const char *sys, *disk;
        int (*found)(void *userdata, const char *phrase);
        void *userdata;
};

static void globfree_pointer(glob_t *paths)
{
        globfree(paths);
}

/* Calls `each` for every path below /sys that matches. */
static int for_each_path(const struct stack *stack, const char *pattern,
        int (*each)(const struct stack *stack, const char *path, const void *data), const void *data)
{
        _cleanup_(globfree_pointer) glob_t paths = {};
        char full[PATH_MAX];
        int n = snprintf(full, sizeof(full), "%s/%s", stack->sys, pattern), r;

        if (n < 0 || (size_t)n >= sizeof(full))
                return -ENAMETOOLONG;
        r = glob(full, GLOB_NOSORT, NULL, &paths);
        if (r != 0)
                return r == GLOB_NOSPACE ? -ENOMEM : 0;
        r = 0;
        for (size_t i = 0; r >= 0 && i < paths.gl_pathc; i++)
                r = each(stack, paths.gl_pathv[i], data);
        return r;
}

/* ---- holders: dm, md, bcache, drbd ---- */

static int add_holder(const struct stack *stack, const char *path, const void *data _unused_)
{
        char phrase[NAME_MAX + 32];

        snprintf(phrase, sizeof(phrase), "part of /dev/%s", strrchr(path, '/') + 1);
        return stack->found(stack->userdata, phrase);
}

static int find_holders(const struct stack *stack)
{
        char of_disk[128], of_partitions[128];
        int r;

        snprintf(of_disk, sizeof(of_disk), "block/%s/holders/*", stack->disk);
        snprintf(of_partitions, sizeof(of_partitions), "block/%s/%sp[0-9]*/holders/*", stack->disk,
                stack->disk);
        r = for_each_path(stack, of_disk, add_holder, NULL);
        return r < 0 ? r : for_each_path(stack, of_partitions, add_holder, NULL);
}

/* ---- backing files ---- */

/* An attribute that holds the path of what is served from. */
struct backing {
        const char *pattern; /* below /sys */
        const char *words;   /* before the name of who serves */
        unsigned up;         /* the part of the attribute's path that is this name: 1 is its folder */
        bool may_be_link;    /* the path is the words of the administrator, not what was opened */
};

static const struct backing backings[] = {
        {.pattern = "block/loop*/loop/backing_file", .words = "backing /dev/", .up = 2},
        {                                                                      .pattern = "block/zram*/backing_dev",                  .words = "backing /dev/",                  .up = 1       },
        { .pattern = "kernel/config/nvmet/subsystems/*/namespaces/*/device_path",
         .words = "exported by the NVMe target as ",
         .up = 3,
         .may_be_link = true},
        {                                                                           .pattern = "kernel/config/target/core/*/*/udev_path",
         .words = "exported by the SCSI target as ",
         .up = 1,
         .may_be_link = true},
};

static bool read_path(const char *attribute, char path[static PATH_MAX])
{
        _cleanup_close_ int fd = open(attribute, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, path, PATH_MAX - 1);

        path[n > 0 ? n : 0] = '\0';
        path[strcspn(path, "\n")] = '\0';
        return path[0] == '/';
}

/* Whether `path` is the disk's node. A loop device may also be on a file that is called like it. */
static bool is_node(const struct stack *stack, const char *path)
{
        static const char dev[] = "/dev/";
        struct statx info;

        if (!disk_name_in_path(stack->disk, path))
                return false;
        if (strncmp(path, dev, strlen(dev)) == 0 && strrchr(path, '/') == path + strlen(dev) - 1)
                return true;
        return statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE,
                       &info)
                       >= 0
               && S_ISBLK(info.stx_mode);
}

/* The `up`th part from the end of `path`, in place. */
static const char *part_of(char *path, unsigned up)
{
        for (unsigned i = 0; i < up; i++)
                *strrchr(path, '/') = '\0';
        return strrchr(path, '/') + 1;
}

static int add_backed(const struct stack *stack, const char *attribute, const void *data)
{
        const struct backing *backing = data;
        char path[PATH_MAX], resolved[PATH_MAX], copy[PATH_MAX], phrase[2 * NAME_MAX];

        if (!read_path(attribute, path))
                return 0;
        if (backing->may_be_link && realpath(path, resolved))
                strcpy(path, resolved);
        if (!is_node(stack, path))
                return 0;
        snprintf(copy, sizeof(copy), "%s", attribute);
        snprintf(phrase, sizeof(phrase), "%s%.*s", backing->words, NAME_MAX, part_of(copy, backing->up));
        return stack->found(stack->userdata, phrase);
}

int disk_stack_find(
        const char *sys, const char *disk, int (*found)(void *userdata, const char *phrase), void *userdata)
{
        const struct stack stack = {.sys = sys, .disk = disk, .found = found, .userdata = userdata};
        int r = find_holders(&stack);

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(backings); i++)
                r = for_each_path(&stack, backings[i].pattern, add_backed, &backings[i]);
        return r;
}
