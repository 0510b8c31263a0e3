/* SPDX-License-Identifier: MIT */
/* Small files, read at once, files that are replaced as a whole, and directories. */
#include "ublkd/base/file_io.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

ssize_t read_text_at(int dir, const char *name, char *text, size_t size)
{
        _cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

        text[n > 0 ? n : 0] = '\0';
        return n < 0 ? -errno : n;
}

ssize_t read_line_at(int dir, const char *name, char *text, size_t size)
{
        ssize_t n = read_text_at(dir, name, text, size);

        if (n < 0)
                return n;
        n = (ssize_t)strcspn(text, "\n");
        text[n] = '\0';
        return n;
}

int read_number_at(int dir, const char *name, uint64_t *ret)
{
        char text[32];
        ssize_t n = read_text_at(dir, name, text, sizeof(text));

        if (n < 0)
                return (int)n;
        *ret = strtoull(text, NULL, 10);
        return 0;
}

int read_device_at(int dir, const char *name, dev_t *ret)
{
        unsigned device_major, device_minor;
        char text[32];
        ssize_t n = read_text_at(dir, name, text, sizeof(text));

        if (n < 0)
                return (int)n;
        if (sscanf(text, "%u:%u", &device_major, &device_minor) != 2)
                return -EBADMSG;
        *ret = makedev(device_major, device_minor);
        return 0;
}

int read_whole_at(int dir, const char *name, size_t size_max, char **ret)
{
        _cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        _cleanup_free_ char *text = NULL;
        struct stat info;
        ssize_t n;

        if (fd < 0 || fstat(fd, &info) < 0)
                return -errno;
        if (!S_ISREG(info.st_mode))
                return -EBADMSG;
        if ((uint64_t)info.st_size > size_max)
                return -EFBIG;
        text = malloc((size_t)info.st_size + 1);
        if (!text)
                return -ENOMEM;
        n = read(fd, text, (size_t)info.st_size);
        if (n < 0)
                return -errno;
        text[n] = '\0';
        *ret = TAKE_PTR(text);
        return 0;
}

int replace_at(
        int dir, const char *name, int (*make)(int dir, const char *fresh, void *userdata), void *userdata)
{
        const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
        char fresh[PATH_MAX];
        int r;

        if (snprintf(fresh, sizeof(fresh), "%.*s.%s.new", (int)(last - name), name, last)
                >= (int)sizeof(fresh))
                return -ENAMETOOLONG;
        r = make(dir, fresh, userdata);
        if (r == -EEXIST || r == -EADDRINUSE) { /* left by a process that died right here */
                if (unlinkat(dir, fresh, 0) < 0 && errno != ENOENT)
                        return -errno;
                r = make(dir, fresh, userdata);
        }
        if (r >= 0 && renameat(dir, fresh, dir, name) < 0)
                r = -errno;
        if (r < 0)
                (void)unlinkat(dir, fresh, 0); /* else the next attempt does */
        return r < 0 ? r : 0;
}

struct text_file {
        const char *text;
        mode_t mode;
};

static int make_text(int dir, const char *fresh, void *userdata)
{
        const struct text_file *file = userdata;
        _cleanup_close_ int fd =
                openat(dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, file->mode);
        size_t size = strlen(file->text);
        ssize_t n = fd < 0 ? -1 : write(fd, file->text, size);

        if (n < 0)
                return -errno;
        if ((size_t)n < size)
                return -ENOSPC;
        return fchmod(fd, file->mode) < 0 ? -errno : 0;
}

int replace_text_at(int dir, const char *name, mode_t mode, const char *text)
{
        return replace_at(dir, name, make_text, &(struct text_file){text, mode});
}

int make_dirs(const char *path, mode_t mode)
{
        char part[PATH_MAX];
        int n = snprintf(part, sizeof(part), "%s", path);

        if (n < 0 || n >= (int)sizeof(part))
                return -ENAMETOOLONG;
        for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                if (mkdir(part, 0755) < 0 && errno != EEXIST)
                        return -errno;
                *slash = '/';
        }
        return mkdir(part, mode) < 0 && errno != EEXIST ? -errno : 0;
}
