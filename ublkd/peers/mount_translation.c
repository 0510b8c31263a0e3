/* SPDX-License-Identifier: MIT */
/* The same file by another path, in another mount namespace. */
#include "ublkd/peers/mount_translation.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/kernel/mount_line.h"
#include "ublkd/values/path_text.h"

#include <stdbool.h>
#include <string.h>

enum {
        DEPTH_MAX =
                64, /* mounts above each other; a client that may mount could make thousands, to keep this busy */
};

struct mounts {
        struct mount_line *items; /* strings in the text */
        size_t count;
};

static void clear_mounts(struct mounts *mounts)
{
        free(mounts->items);
}

/* Skips lines that are malformed. */
static int read_mounts(char *text, struct mounts *ret)
{
        size_t lines = 1;

        for (const char *at = text; (at = strchr(at, '\n')); at++)
                lines++;
        ret->items = calloc(lines, sizeof(*ret->items));
        if (!ret->items)
                return -ENOMEM;
        for (char *line; (line = strsep(&text, "\n"));)
                if (mount_line_parse(line, &ret->items[ret->count]) >= 0
                        && *ret->items[ret->count].point == '/')
                        ret->count++;
        return 0;
}

static bool is_root(const struct mounts *mounts, const struct mount_line *mount)
{
        if (strcmp(mount->point, "/") != 0)
                return false;
        for (size_t i = 0; i < mounts->count; i++)
                if (mounts->items[i].id == mount->parent && &mounts->items[i] != mount)
                        return false;
        return true;
}

static const struct mount_line *find_root(const struct mounts *mounts)
{
        for (size_t i = 0; i < mounts->count; i++)
                if (is_root(mounts, &mounts->items[i]))
                        return &mounts->items[i];
        return NULL;
}

/* Return the mount that the path enters first from `mount`; NULL: it stays there. */
static const struct mount_line *find_next(
        const struct mounts *mounts, const struct mount_line *mount, const char *path)
{
        const struct mount_line *next = NULL;

        for (size_t i = 0; i < mounts->count; i++) {
                const struct mount_line *child = &mounts->items[i];

                if (child->parent == mount->id && child != mount && path_rest(path, child->point)
                        && path_rest(child->point, mount->point)
                        && (!next || strlen(child->point) < strlen(next->point)))
                        next = child;
        }
        return next;
}

/* Return the mount that the path ends in, as a lookup finds it; NULL: none. */
static const struct mount_line *find_mount(const struct mounts *mounts, const char *path)
{
        const struct mount_line *mount = find_root(mounts), *next;

        for (unsigned depth = 0; mount && depth < DEPTH_MAX; depth++) {
                next = find_next(mounts, mount, path);
                if (!next)
                        return mount;
                mount = next;
        }
        return NULL;
}

static int join(const char *directory, const char *rest, char **ret)
{
        if (asprintf(ret, "%s%s", strcmp(directory, "/") == 0 && *rest ? "" : directory, rest) < 0)
                return -ENOMEM;
        return 0;
}

/* Find the path through this mount to the file `inside` the file system. Return 0; -ENOENT: it does not show the file, or
 * another mount hides it; -ENOMEM. */
static int path_through(
        const struct mounts *mounts, const struct mount_line *mount, const char *inside, char **ret)
{
        const char *rest = path_rest(inside, mount->root);
        _cleanup_free_ char *path = NULL;
        int r = rest ? join(mount->point, rest, &path) : -ENOENT;

        if (r < 0)
                return r;
        if (find_mount(mounts, path) != mount)
                return -ENOENT;
        *ret = TAKE_PTR(path);
        return 0;
}

static int find_ours(
        const struct mounts *ours, const struct mount_line *theirs, const char *inside, char **ret)
{
        _cleanup_free_ char *best = NULL;
        size_t best_root = 0;

        for (size_t i = 0; i < ours->count; i++) {
                const struct mount_line *mount = &ours->items[i];
                char *path;
                int r;

                if (strcmp(mount->device, theirs->device) != 0 || (best && strlen(mount->root) >= best_root))
                        continue;
                r = path_through(ours, mount, inside, &path);
                if (r == -ENOMEM)
                        return r;
                if (r < 0)
                        continue;
                free(best);
                best = path;
                best_root = strlen(mount->root);
        }
        if (!best)
                return -ENOENT;
        *ret = TAKE_PTR(best);
        return 0;
}

/* The kernel writes "ro" or "rw" first. */
static bool is_read_only(const struct mount_line *mount)
{
        return strncmp(mount->flags, "ro", 2) == 0 && (mount->flags[2] == '\0' || mount->flags[2] == ',');
}

int mount_translate(char *theirs, char *ours, const char *path, bool writes, char **ret)
{
        _cleanup_(clear_mounts) struct mounts their_mounts = {}, our_mounts = {};
        _cleanup_free_ char *inside = NULL;
        const struct mount_line *mount;
        int r = read_mounts(theirs, &their_mounts);

        if (r >= 0)
                r = read_mounts(ours, &our_mounts);
        if (r < 0)
                return r;
        mount = find_mount(&their_mounts, path);
        if (!mount)
                return -ENOENT;
        if (writes && is_read_only(mount))
                return -EROFS;
        r = join(mount->root, path_rest(path, mount->point), &inside);
        return r < 0 ? r : find_ours(&our_mounts, mount, inside, ret);
}
