/* SPDX-License-Identifier: MIT */
/* Which files a configuration is read from. */
#include "ublkd/config/config_paths.h"

#include "ublkd/base/reading.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* The first has priority. */
static const char *const directories[] = {"/etc", "/run", "/usr/local/lib", "/usr/lib"};

static int join(char **ret, const char *one, const char *two, const char *three)
{
        return asprintf(ret, "%s%s%s", one, two, three) < 0 ? -ENOMEM : 0;
}

static bool is_absent(int error)
{
        return error == -ENOENT || error == -ENOTDIR;
}

static int fail(struct config_paths *paths, char *path, int error)
{
        paths->failed = path;
        paths->error = error;
        return error;
}

/* Takes the path over. */
static int insert(struct config_paths *paths, size_t at, char *path)
{
        char **items = realloc(paths->items, (paths->count + 1) * sizeof(*items));

        if (!items) {
                free(path);
                return -ENOMEM;
        }
        memmove(items + at + 1, items + at, (paths->count - at) * sizeof(*items));
        items[at] = path;
        paths->items = items;
        paths->count++;
        return 0;
}

static const char *name_of(const char *path)
{
        return strrchr(path, '/') + 1;
}

/* Keep the drop-ins sorted by name. A file of an earlier directory replaces one of the same name. */
static int add_drop_in(struct config_paths *paths, size_t first, const char *directory, const char *name)
{
        _cleanup_free_ char *path = NULL;
        size_t at = first;

        while (at < paths->count && strcmp(name_of(paths->items[at]), name) < 0)
                at++;
        if (at < paths->count && strcmp(name_of(paths->items[at]), name) == 0)
                return 0;
        return join(&path, directory, "/", name) < 0 ? -ENOMEM : insert(paths, at, TAKE_PTR(path));
}

static bool is_drop_in(const char *name)
{
        size_t length = strlen(name);

        return name[0] != '.' && length > strlen(".conf")
               && strcmp(name + length - strlen(".conf"), ".conf") == 0;
}

static int add_drop_ins(struct config_paths *paths, size_t first, const char *root, const char *directory)
{
        _cleanup_free_ char *path = NULL;
        _cleanup_closedir_ DIR *dir = NULL;
        const struct dirent *entry;
        int r = join(&path, root, directory, "/ublkd/ublkd.conf.d");

        if (r < 0)
                return r;
        dir = opendir(path);
        if (!dir)
                return is_absent(-errno) ? 0 : fail(paths, TAKE_PTR(path), -errno);
        errno = 0;
        while (r >= 0 && (entry = readdir(dir))) {
                if (is_drop_in(entry->d_name))
                        r = add_drop_in(paths, first, path, entry->d_name);
                errno = 0;
        }
        if (r >= 0 && errno != 0)
                r = fail(paths, TAKE_PTR(path), -errno);
        return r;
}

/* A link that leads nowhere is there: the administrator meant a file. Return 1 if the file is there. */
static int add_main(struct config_paths *paths, const char *root, const char *directory)
{
        _cleanup_free_ char *path = NULL;
        struct stat info;
        int r = join(&path, root, directory, "/ublkd/ublkd.conf");

        if (r < 0)
                return r;
        if (lstat(path, &info) < 0)
                return is_absent(-errno) ? 0 : fail(paths, TAKE_PTR(path), -errno);
        r = insert(paths, 0, TAKE_PTR(path));
        return r < 0 ? r : 1;
}

int config_paths_list(const char *root, struct config_paths *ret)
{
        int r = 0;

        *ret = (struct config_paths){};
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(directories); i++)
                r = add_main(ret, root, directories[i]);
        if (r >= 0) {
                size_t first = ret->count;

                r = 0;
                for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(directories); i++)
                        r = add_drop_ins(ret, first, root, directories[i]);
        }
        return r;
}

void config_paths_clear(struct config_paths *paths)
{
        for (size_t i = 0; i < paths->count; i++)
                free(paths->items[i]);
        free(paths->items);
        free(paths->failed);
        *paths = (struct config_paths){};
}

int config_paths_read(const char *path, char **ret, size_t *ret_size)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat info;

        if (fd < 0 || fstat(fd, &info) < 0)
                return -errno;
        if (!S_ISREG(info.st_mode) && !(S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3)))
                return S_ISDIR(info.st_mode) ? -EISDIR : -EBADMSG;
        return read_to_end(fd, CONFIG_FILE_MAX, ret, ret_size);
}
