/* SPDX-License-Identifier: MIT */
/* To which users a mounted file system was delivered, as files of the kernel's memory. */
#include "ublkd/nodes/mount_users.h"

#include "ublkd/base/cleanup.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char list_end[] = ".users";

/* The last file that a new list gets, and the first that an old one loses. */
static const char whole[] = "end";

/* Return 0 or -ENAMETOOLONG. */
static int list_path(const char *mount, char ret[static PATH_MAX])
{
        return snprintf(ret, PATH_MAX, "%s%s", mount, list_end) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Return a descriptor; -ENOENT: there is no list; other -errno. */
static int open_list(const char *mount)
{
        char path[PATH_MAX];
        int r = list_path(mount, path), fd;

        if (r < 0)
                return r;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* A name that is not a number is not ours. Return 1, 0 or -ERANGE. */
static int parse_user(const char *name, uid_t *ret)
{
        unsigned long user;
        char *end;

        if (*name < '0' || *name > '9')
                return 0;
        errno = 0;
        user = strtoul(name, &end, 10);
        if (errno != 0 || *end != '\0' || user >= UINT_MAX)
                return -ERANGE;
        *ret = (uid_t)user;
        return 1;
}

static int add_item(struct mount_users *users, uid_t user)
{
        uid_t *items = reallocarray(users->items, users->count + 1, sizeof(*items));

        if (!items)
                return -ENOMEM;
        users->items = items;
        items[users->count++] = user;
        return 0;
}

/* Return 0; -ENODATA: it is not whole; other -errno. */
static int read_all(DIR *list, struct mount_users *users)
{
        const struct dirent *entry;
        int r = faccessat(dirfd(list), whole, F_OK, AT_SYMLINK_NOFOLLOW) < 0 ? -ENODATA : 0;

        while (r >= 0 && (errno = 0, (entry = readdir(list)))) {
                uid_t user;

                r = parse_user(entry->d_name, &user);
                if (r > 0)
                        r = add_item(users, user);
        }
        return r < 0 ? r : -errno;
}

int mount_users_read(const char *mount, struct mount_users *ret)
{
        int fd = open_list(mount), r;
        _cleanup_closedir_ DIR *list = fd < 0 ? NULL : fdopendir(fd);
        struct mount_users users = {};

        if (!list) {
                close_fd(fd);
                return 0;
        }
        r = read_all(list, &users);
        if (r >= 0) {
                *ret = users;
                return 1;
        }
        mount_users_clear(&users);
        return r == -ENOMEM ? r : 0;
}

static int remove_users(DIR *list)
{
        const struct dirent *entry;
        uid_t user;

        while (errno = 0, (entry = readdir(list)))
                if (parse_user(entry->d_name, &user) != 0 && unlinkat(dirfd(list), entry->d_name, 0) < 0)
                        return -errno;
        return -errno;
}

/* Return 0, also if there is no list, or -errno. */
static int empty(const char *mount)
{
        int fd = open_list(mount);
        _cleanup_closedir_ DIR *list = fd < 0 ? NULL : fdopendir(fd);

        if (!list) {
                close_fd(fd);
                return fd == -ENOENT ? 0 : fd < 0 ? fd : -ENOMEM;
        }
        if (unlinkat(dirfd(list), whole, 0) < 0 && errno != ENOENT)
                return -errno;
        return remove_users(list);
}

/* Return 0, also if the file is there, or -errno. */
static int put_file(int list, const char *name)
{
        _cleanup_close_ int file = openat(list, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

        return file < 0 ? -errno : 0;
}

void mount_users_begin(const char *mount)
{
        _cleanup_close_ int list = -1;
        char path[PATH_MAX];

        if (empty(mount) < 0 || list_path(mount, path) < 0 || (mkdir(path, 0700) < 0 && errno != EEXIST))
                return;
        list = open_list(mount);
        if (list >= 0)
                (void)put_file(list, whole);
}

int mount_users_add(const char *mount, uid_t user)
{
        _cleanup_close_ int list = open_list(mount);
        char name[16];

        if (list < 0)
                return list == -ENOENT ? 0 : list;
        snprintf(name, sizeof(name), "%u", (unsigned)user);
        return put_file(list, name);
}

void mount_users_end(const char *mount)
{
        char path[PATH_MAX];

        if (empty(mount) >= 0 && list_path(mount, path) >= 0)
                (void)rmdir(path);
}

void mount_users_clean(const char *top)
{
        _cleanup_closedir_ DIR *directory = opendir(top);
        const struct dirent *entry;
        char mount[PATH_MAX];

        while (directory && (entry = readdir(directory))) {
                size_t length = strlen(entry->d_name), end = strlen(list_end);
                int size;

                if (length <= end || strcmp(entry->d_name + length - end, list_end) != 0)
                        continue;
                size = snprintf(mount, sizeof(mount), "%s/%.*s", top, (int)(length - end), entry->d_name);
                if (size < (int)sizeof(mount) && access(mount, F_OK) < 0 && errno == ENOENT)
                        mount_users_end(mount);
        }
}

bool mount_users_has(const struct mount_users *users, uid_t user)
{
        for (size_t i = 0; i < users->count; i++)
                if (users->items[i] == user)
                        return true;
        return false;
}

void mount_users_clear(struct mount_users *users)
{
        free(users->items);
        *users = (struct mount_users){};
}
