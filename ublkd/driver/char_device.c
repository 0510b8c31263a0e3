/* SPDX-License-Identifier: MIT */
/* Looks whether a process has the character device of a disk, and watches for the close of it. */
#include "ublkd/driver/char_device.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/file_io.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 64 };

/* Whether `fd` is the device that the kernel shows, whatever the path has led to. */
static bool is_it(int fd, dev_t shown)
{
        struct stat stat;

        return fstat(fd, &stat) >= 0 && S_ISCHR(stat.st_mode) && stat.st_rdev == shown;
}

enum char_device char_device_look(int number)
{
        _cleanup_close_ int class = open("/sys/class/ublk-char", O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
        char path[PATH_SIZE];
        dev_t shown;
        int r;

        if (class < 0)
                return CHAR_DEVICE_HELD;
        (void)snprintf(path, sizeof(path), "ublkc%d/dev", number);
        r = read_device_at(class, path, &shown);
        if (r < 0)
                return r == -ENOENT ? CHAR_DEVICE_GONE : CHAR_DEVICE_HELD;
        (void)snprintf(path, sizeof(path), "/dev/ublkc%d", number);
        fd = open(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        return fd >= 0 && is_it(fd, shown) ? CHAR_DEVICE_FREE : CHAR_DEVICE_HELD;
}

int char_device_watch(sd_event *event, int number, sd_event_inotify_handler_t on_closed, void *userdata,
        sd_event_source **ret)
{
        char path[PATH_SIZE];

        (void)snprintf(path, sizeof(path), "/dev/ublkc%d", number);
        return sd_event_add_inotify(event, ret, path, IN_CLOSE | IN_DONT_FOLLOW, on_closed, userdata);
}
