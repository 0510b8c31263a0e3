/* SPDX-License-Identifier: MIT */
/* A name of a block device that stays the same over boots, and after it was pulled and plugged in again. */
#include "targets/loop/stable_name.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/kernel/kernel_name.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINKS_MAX = 40 }; /* as the kernel has it */

/* The best first. udev makes them all, but device mapper makes those in mapper/ itself. */
static const struct kind {
        const char *folder, *prefix;
} kinds[] = {
        {"disk/by-id",       "wwn-"      }, /* what the maker of the drive has given it */
        {"disk/by-id",       "nvme-eui." },
        {"disk/by-id",       "nvme-uuid."},
        {"disk/by-id",       "dm-uuid-"  }, /* of a logical volume, a LUKS container, a multipath */
        {"disk/by-id",       "md-uuid-"  },
        {"disk/by-id",       ""          }, /* model and serial number */
        {"disk/by-partuuid", ""          }, /* written on the disk, in its partition table */
        {"mapper",           ""          }, /* what the administrator calls it */
        {"md",               ""          },
};

/* Names in by-id that stand for what is written on the disk, or for a name that an administrator gave it. */
static const char *const others_in_by_id[] = {"lvm-pv-uuid-", "dm-name-", "md-name-"};

static bool begins_with(const char *text, const char *prefix)
{
        return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* udev replaces all else; what it has not made is nothing to advise. */
static bool is_printable(const char *name)
{
        for (; *name; name++)
                if (*name <= ' ' || *name > '~')
                        return false;
        return true;
}

static bool is_of_kind(const struct kind *kind, const char *name)
{
        if (*name == '.' || !is_printable(name) || !begins_with(name, kind->prefix))
                return false;
        for (size_t i = 0; strcmp(kind->folder, "disk/by-id") == 0 && i < ARRAY_SIZE(others_in_by_id); i++)
                if (begins_with(name, others_in_by_id[i]))
                        return false;
        return true;
}

static bool leads_to(int directory, const char *name, const struct stat *wanted)
{
        struct stat stat;

        return fstatat(directory, name, &stat, 0) == 0
               && (stat.st_mode & S_IFMT) == (wanted->st_mode & S_IFMT) && stat.st_rdev == wanted->st_rdev;
}

/* The first name, in the order of the alphabet, of this kind for the device in *ret, which stays NULL when
 * there is none. */
static int find_in(const char *path, const struct kind *kind, const struct stat *wanted, char **ret)
{
        DIR *directory = opendir(path);
        const struct dirent *entry;
        char best[NAME_MAX + 1] = "";

        while (directory && (entry = readdir(directory)))
                if (is_of_kind(kind, entry->d_name) && (!*best || strcmp(entry->d_name, best) < 0)
                        && leads_to(dirfd(directory), entry->d_name, wanted))
                        snprintf(best, sizeof(best), "%s", entry->d_name);
        if (directory)
                closedir(directory);
        if (*best && asprintf(ret, "%s/%s", path, best) < 0) {
                *ret = NULL;
                return -ENOMEM;
        }
        return 0;
}

int stable_name_find(const char *dev, const struct stat *stat, char **ret)
{
        char *found = NULL;
        int r = 0;

        for (size_t i = 0; r >= 0 && !found && i < ARRAY_SIZE(kinds); i++) {
                _cleanup_free_ char *path = NULL;

                if (asprintf(&path, "%s/%s", dev, kinds[i].folder) < 0) {
                        path = NULL;
                        return -ENOMEM;
                }
                r = find_in(path, &kinds[i], stat, &found);
        }
        if (r >= 0)
                *ret = found;
        return r;
}

/* The path with the links of its directories resolved, but not that of its last part. */
static bool resolve_directory(const char *path, char ret[static PATH_MAX])
{
        const char *slash = strrchr(path, '/');
        char directory[PATH_MAX], resolved[PATH_MAX];
        int n;

        if (!slash || (size_t)(slash - path) >= sizeof(directory))
                return false;
        snprintf(directory, sizeof(directory), "%.*s/", (int)(slash - path), path);
        if (!realpath(directory, resolved))
                return false;
        n = snprintf(ret, PATH_MAX, "%s/%s", strcmp(resolved, "/") == 0 ? "" : resolved, slash + 1);
        return n > 0 && n < PATH_MAX;
}

/* Where the link at `path` points to. False if it is not a link. */
static bool follow(const char *path, char ret[static PATH_MAX])
{
        const char *slash = strrchr(path, '/');
        char target[PATH_MAX];
        ssize_t length = readlink(path, target, sizeof(target) - 1);
        int n;

        if (length < 0 || !slash)
                return false;
        target[length] = '\0';
        n = *target == '/' ? snprintf(ret, PATH_MAX, "%s", target)
                           : snprintf(ret, PATH_MAX, "%.*s/%s", (int)(slash - path), path, target);
        return n > 0 && n < PATH_MAX;
}

bool stable_name_is_wanted(const char *path)
{
        char next[PATH_MAX], resolved[PATH_MAX];

        snprintf(next, sizeof(next), "%s", path);
        for (int i = 0; i < LINKS_MAX && resolve_directory(next, resolved); i++) {
                if (kernel_name_may_change(resolved))
                        return true;
                if (begins_with(resolved, "/dev/"))
                        return false; /* made again at each boot, for the disk that it names */
                if (!follow(resolved, next))
                        return true; /* a node outside /dev: its number was written down */
        }
        return false;
}
