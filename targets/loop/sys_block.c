/* SPDX-License-Identifier: MIT */
/* Block devices in /sys, by their number. */
#include "targets/loop/sys_block.h"

#include "ublkd/base/file_io.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

bool sys_block_attribute(dev_t number, const char *name, char *text, size_t size)
{
        char path[96];

        snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s", major(number), minor(number), name);
        return read_text_at(AT_FDCWD, path, text, size) > 0;
}

/* "DEVNAME=sda1" is a line of its uevent. */
static bool find_node(dev_t number, char path[static PATH_MAX])
{
        static const char key[] = "DEVNAME=";
        char text[1024];
        const char *line = text;

        if (!sys_block_attribute(number, "uevent", text, sizeof(text)))
                return false;
        while (line && strncmp(line, key, strlen(key)) != 0) {
                line = strchr(line, '\n');
                line = line ? line + 1 : NULL;
        }
        if (!line)
                return false;
        line += strlen(key);
        snprintf(path, PATH_MAX, "/dev/%.*s", (int)strcspn(line, "\n"), line);
        return true;
}

int sys_block_open_node(dev_t number, int flags, int *ret)
{
        _cleanup_close_ int fd = -1;
        char path[PATH_MAX];
        struct stat stat_buffer;

        if (!find_node(number, path))
                return -ENODEV;
        if (stat(path, &stat_buffer) < 0) /* before it is opened: a FIFO would wait */
                return -errno;
        if (!S_ISBLK(stat_buffer.st_mode) || stat_buffer.st_rdev != number)
                return -ENODEV;
        fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0 || fstat(fd, &stat_buffer) < 0)
                return -errno;
        if (!S_ISBLK(stat_buffer.st_mode) || stat_buffer.st_rdev != number)
                return -ENODEV;
        *ret = TAKE_FD(fd);
        return 0;
}

static int read_slave(int folder, const char *name, dev_t *ret)
{
        char path[NAME_MAX + 8];
        int r;

        snprintf(path, sizeof(path), "%s/dev", name);
        r = read_device_at(folder, path, ret);
        return r == -EBADMSG ? -EIO : r;
}

static int each_entry(DIR *folder, int (*each)(void *userdata, dev_t slave), void *userdata)
{
        const struct dirent *entry;
        dev_t slave = 0;
        int r = 0;

        while (r >= 0 && (errno = 0, entry = readdir(folder))) {
                if (entry->d_name[0] == '.')
                        continue;
                r = read_slave(dirfd(folder), entry->d_name, &slave);
                if (r >= 0)
                        r = each(userdata, slave);
        }
        return r < 0 ? r : -errno;
}

int sys_block_each_slave(dev_t number, int (*each)(void *userdata, dev_t slave), void *userdata)
{
        char path[96];
        DIR *folder;
        int r;

        snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/slaves", major(number), minor(number));
        folder = opendir(path);
        if (!folder)
                return -errno;
        r = each_entry(folder, each, userdata);
        closedir(folder);
        return r;
}
