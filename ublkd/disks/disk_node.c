/* SPDX-License-Identifier: MIT */
/* Owner, mode and link of a live disk's block node. */
#include "ublkd/disks/disk_node.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/file_io.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { ANNOUNCEMENT_SIZE = 256 };

static const char link_dir[] = "/dev/ublk/by-name";

/* Formats into a PATH_MAX buffer; -ENAMETOOLONG when it does not fit. */
_printf_(2, 3) static int path_format(char path[static PATH_MAX], const char *format, ...)
{
        va_list arguments;
        int n;

        va_start(arguments, format);
        n = vsnprintf(path, PATH_MAX, format, arguments);
        va_end(arguments);
        return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int make_dir(const char *path)
{
        return mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

struct file_name {
        char text[32];
};

static struct file_name announcement_name(int number)
{
        struct file_name name;

        snprintf(name.text, sizeof(name.text), "ublkb%d", number);
        return name;
}

static bool file_has(int dir, int number, const char *text)
{
        _cleanup_free_ char *found = NULL;

        return read_whole_at(dir, announcement_name(number).text, ANNOUNCEMENT_SIZE, &found) >= 0
               && strcmp(found, text) == 0;
}

int disk_node_announce(int disks, const struct disk_node *node)
{
        char names[ANNOUNCEMENT_SIZE / 2] = "", text[ANNOUNCEMENT_SIZE];
        int r;

        if (!node->hidden)
                snprintf(names, sizeof(names), "UBLKD_NAME=%s\nUBLKD_SERIAL=%s\n", node->name, node->serial);
        snprintf(text, sizeof(text), "%sUBLKD_UID=%u\nUBLKD_GID=%u\nUBLKD_MODE=%04o\n", names, node->uid,
                node->gid, node->mode);
        if (file_has(disks, node->number, text))
                return 0;
        r = replace_text_at(disks, announcement_name(node->number).text, 0644, text); /* udev reads it */
        return r < 0 ? r : 1;
}

/* device: relative to /sys/block */
static int send_change(const char *device)
{
        _cleanup_close_ int fd = -1;
        char path[PATH_MAX];
        int r = path_format(path, "/sys/block/%s/uevent", device);

        if (r < 0)
                return r;
        fd = open(path, O_WRONLY | O_CLOEXEC);
        return fd < 0 || write(fd, "change", strlen("change")) < 0 ? -errno : 0;
}

/* A partition that goes meanwhile needs no event. */
static int notify_partitions(const char *disk)
{
        _cleanup_closedir_ DIR *dir = NULL;
        char path[PATH_MAX], device[2 * NAME_MAX + 2], prefix[32];
        int r = path_format(path, "/sys/block/%s", disk);

        if (r < 0)
                return r;
        dir = opendir(path);
        if (!dir)
                return -errno;
        snprintf(prefix, sizeof(prefix), "%sp", disk);
        for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
                if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
                        continue;
                snprintf(device, sizeof(device), "%s/%s", disk, entry->d_name);
                r = send_change(device);
                if (r < 0 && r != -ENOENT)
                        return r;
        }
        return 0;
}

int disk_node_notify(int number)
{
        char disk[32];
        int r;

        snprintf(disk, sizeof(disk), "ublkb%d", number);
        r = send_change(disk);
        return r < 0 ? r : notify_partitions(disk);
}

static int publish_owner(const char *path, const struct disk_node *node)
{
        struct stat st;

        if (stat(path, &st) < 0)
                return -errno;
        if (!S_ISBLK(st.st_mode))
                return -ENOENT; /* a regular file in the place of a node that does not exist yet */
        if ((st.st_uid != node->uid || st.st_gid != node->gid) && chown(path, node->uid, node->gid) < 0)
                return -errno;
        if ((st.st_mode & 07777) != node->mode && chmod(path, node->mode) < 0)
                return -errno;
        return 0;
}

static int link_path(char path[static PATH_MAX], const char *name)
{
        return path_format(path, "%s/%s", link_dir, name);
}

/* The target of the link for `name`, "" when there is none. */
static void link_read(const char *name, char target[static 64])
{
        char path[PATH_MAX];
        ssize_t n = -1;

        if (link_path(path, name) >= 0)
                n = readlink(path, target, 63);
        target[n < 0 ? 0 : n] = '\0';
}

/* A link made by udev names the node relative as well, in the same words. */
static void link_target(int number, char target[static 64])
{
        snprintf(target, 64, "../../ublkb%d", number);
}

static int make_link(int dir, const char *fresh, void *target)
{
        return symlinkat(target, dir, fresh) < 0 ? -errno : 0;
}

static int publish_link(const struct disk_node *node)
{
        char path[PATH_MAX], wanted[64], found[64];
        int r;

        link_target(node->number, wanted);
        link_read(node->name, found);
        if (strcmp(wanted, found) == 0)
                return 0;
        r = make_dir("/dev/ublk");
        if (r >= 0)
                r = make_dir(link_dir);
        if (r >= 0)
                r = link_path(path, node->name);
        return r < 0 ? r : replace_at(AT_FDCWD, path, make_link, wanted);
}

static int remove_file(const char *path)
{
        return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

/* Only if it leads to this disk. */
static int remove_link(const char *name, int number)
{
        char path[PATH_MAX], wanted[64], found[64];
        int r;

        link_target(number, wanted);
        link_read(name, found);
        if (strcmp(wanted, found) != 0)
                return 0;
        r = link_path(path, name);
        return r < 0 ? r : remove_file(path);
}

int disk_node_publish(const struct disk_node *node)
{
        char path[PATH_MAX];
        int r = path_format(path, "/dev/ublkb%d", node->number);

        if (r >= 0)
                r = publish_owner(path, node);
        if (r >= 0)
                r = node->hidden ? remove_link(node->name, node->number) : publish_link(node);
        return r;
}

int disk_node_withdraw(int disks, const char *name, int number)
{
        struct file_name announcement = announcement_name(number);
        int r = disks < 0 ? disks : 0, link_r;

        if (r >= 0 && unlinkat(disks, announcement.text, 0) < 0 && errno != ENOENT)
                r = -errno;
        link_r = remove_link(name, number);
        return r < 0 ? r : link_r;
}
