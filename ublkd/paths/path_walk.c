/* SPDX-License-Identifier: MIT */
/* Follows a path as the kernel does, one name after the other.
 *
 * `rest` is what is still to be followed; a link puts its target before it. The bounds are the kernel's: 40
 * links, PATH_MAX bytes for each path. */
#include "ublkd/paths/path_walk.h"

#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { LINKS_MAX = 40, STEPS_MAX = 512, REST_MAX = 2 * PATH_MAX };

struct walk {
        path_walk_step step;
        void *userdata;
        int directory;
        char rest[REST_MAX];
        char place[REST_MAX]; /* of `directory`: "" for the root */
        unsigned links, steps;
};

/* Replaces the directory that is looked in. */
static void enter(struct walk *walk, int fd)
{
        close_fd(walk->directory);
        walk->directory = fd;
}

static int enter_root(struct walk *walk)
{
        int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        enter(walk, fd);
        walk->place[0] = '\0';
        return 0;
}

static int enter_parent(struct walk *walk)
{
        int fd = openat(walk->directory, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        char *slash = strrchr(walk->place, '/');

        if (fd < 0)
                return -errno;
        enter(walk, fd);
        if (slash)
                *slash = '\0';
        return 0;
}

/* The directory, or what the last name leads to. A mount that is made on demand is made for a directory, as
 * it would be by open(); what is a link is opened itself. */
static int open_name(const struct walk *walk, const char *name, bool is_last)
{
        int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, fd = -1;

        if (!is_last)
                fd = openat(walk->directory, name, flags | O_DIRECTORY);
        if (fd < 0 && (is_last || errno == ENOTDIR))
                fd = openat(walk->directory, name, flags);
        return fd < 0 ? -errno : fd;
}

/* Puts the target of a link before the rest. 0 or -errno. */
static int follow_link(struct walk *walk, int fd)
{
        char target[PATH_MAX], rest[REST_MAX];
        ssize_t n;

        if (++walk->links > LINKS_MAX)
                return -ELOOP;
        n = readlinkat(fd, "", target, sizeof(target) - 1);
        if (n <= 0)
                return n < 0 ? -errno : -ENOENT;
        target[n] = '\0';
        strcpy(rest, walk->rest);
        if (snprintf(walk->rest, sizeof(walk->rest), "%s%s%s", target, *rest ? "/" : "", rest) >= REST_MAX)
                return -ENAMETOOLONG;
        return *target == '/' ? enter_root(walk) : 0;
}

/* Takes the first name off the rest. False: there is none left. */
static bool take_name(struct walk *walk, char name[static NAME_MAX + 2])
{
        const char *begin = walk->rest + strspn(walk->rest, "/");
        size_t length = strcspn(begin, "/"), kept = length > NAME_MAX ? NAME_MAX + 1 : length;
        const char *after = begin + length;

        memcpy(name, begin, kept); /* one that is too long is found out by open() */
        name[kept] = '\0';
        memmove(walk->rest, after, strlen(after) + 1);
        return length > 0;
}

static void place_append(struct walk *walk, const char *name)
{
        size_t used = strlen(walk->place);

        if (used + 1 + strlen(name) < sizeof(walk->place))
                sprintf(walk->place + used, "/%s", name);
}

/* 1: go on; 0: that was the last one, and *ret_fd is what it leads to; -errno. */
static int walk_name(struct walk *walk, const char *name, int *ret_fd)
{
        size_t used = strlen(walk->place);
        bool is_last = walk->rest[strspn(walk->rest, "/")] == '\0';
        _cleanup_close_ int fd = -1;
        struct stat info;

        if (++walk->steps > STEPS_MAX)
                return -E2BIG;
        place_append(walk, name);
        walk->step(walk->userdata, walk->directory, name, walk->place);
        fd = open_name(walk, name, is_last);
        if (fd < 0)
                return fd;
        if (fstat(fd, &info) < 0)
                return -errno;
        if (S_ISLNK(info.st_mode)) {
                int r;

                walk->place[used] = '\0'; /* a relative target begins where the link lies */
                r = follow_link(walk, fd);
                return r < 0 ? r : 1;
        }
        if (!is_last && !S_ISDIR(info.st_mode))
                return -ENOTDIR;
        if (!is_last)
                enter(walk, TAKE_FD(fd));
        else
                *ret_fd = TAKE_FD(fd);
        return !is_last;
}

static int walk_parent(struct walk *walk)
{
        int r = enter_parent(walk);

        return r < 0 ? r : 1;
}

static int walk_on(struct walk *walk, int *ret_fd)
{
        char name[NAME_MAX + 2];
        int r = 1;

        while (r > 0) {
                if (!take_name(walk, name)) { /* "/", "/..": it leads to the directory itself */
                        *ret_fd = TAKE_FD(walk->directory);
                        return 0;
                }
                if (strcmp(name, ".") == 0)
                        continue;
                r = strcmp(name, "..") == 0 ? walk_parent(walk) : walk_name(walk, name, ret_fd);
        }
        return r;
}

int path_walk(const char *path, path_walk_step step, void *userdata, int *ret_fd)
{
        _cleanup_free_ struct walk *walk = malloc(sizeof(*walk));
        int r;

        if (!walk)
                return -ENOMEM;
        *walk = (struct walk){.step = step, .userdata = userdata, .directory = -1};
        if (snprintf(walk->rest, sizeof(walk->rest), "%s", path) >= PATH_MAX)
                return -ENAMETOOLONG;
        r = enter_root(walk);
        if (r >= 0)
                r = walk_on(walk, ret_fd);
        close_fd(walk->directory);
        return r;
}
