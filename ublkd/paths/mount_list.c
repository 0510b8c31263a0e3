/* SPDX-License-Identifier: MIT */
/* The mounts that this process sees: mountinfo, kept as a sorted array and compared with the next one. */
#include "ublkd/paths/mount_list.h"

#include "ublkd/base/reading.h"
#include "ublkd/kernel/mount_line.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct mounts {
        char *text;
        struct mount_line *items; /* their strings are in `text` */
        size_t count;
};

struct mount_list {
        int fd;
        struct mounts now;
};

DEFINE_CLEANUP(struct mount_list, mount_list_close);

static void mounts_clear(struct mounts *mounts)
{
        free(mounts->text);
        free(mounts->items);
        *mounts = (struct mounts){};
}

static int compare(const void *one, const void *other)
{
        const struct mount_line *left = one, *right = other;
        int order;

        if (left->id != right->id)
                return left->id < right->id ? -1 : 1;
        if (left->parent != right->parent)
                return left->parent < right->parent ? -1 : 1;
        order = strcmp(left->point, right->point);
        if (order == 0)
                order = strcmp(left->device, right->device);
        return order ? order : strcmp(left->root, right->root);
}

static int parse(struct mounts *mounts)
{
        size_t lines = 0;
        char *rest = mounts->text, *line;
        struct mount_line mount;

        for (const char *at = mounts->text; (at = strchr(at, '\n')); at++)
                lines++;
        mounts->items = calloc(lines + 1, sizeof(*mounts->items));
        if (!mounts->items)
                return -ENOMEM;
        while ((line = strsep(&rest, "\n")))
                if (mounts->count <= lines && mount_line_parse(line, &mount) >= 0)
                        mounts->items[mounts->count++] = mount;
        qsort(mounts->items, mounts->count, sizeof(*mounts->items), compare);
        return 0;
}

static int mounts_read(int fd, struct mounts *ret)
{
        struct mounts mounts = {};
        size_t size;
        int r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : read_to_end(fd, SIZE_MAX, &mounts.text, &size);

        if (r >= 0)
                r = parse(&mounts);
        if (r < 0) {
                mounts_clear(&mounts);
                return r;
        }
        *ret = mounts;
        return 0;
}

static void report_differences(const struct mounts *old, const struct mounts *new,
        void (*each)(void *userdata, const char *point), void *userdata)
{
        size_t i = 0, j = 0;

        while (i < old->count || j < new->count) {
                int order = i == old->count   ? 1
                            : j == new->count ? -1
                                              : compare(&old->items[i], &new->items[j]);

                if (order < 0)
                        each(userdata, old->items[i].point);
                else if (order > 0)
                        each(userdata, new->items[j].point);
                i += order <= 0;
                j += order >= 0;
        }
}

int mount_list_changes(
        struct mount_list *list, void (*each)(void *userdata, const char *point), void *userdata)
{
        struct mounts next;
        int r = mounts_read(list->fd, &next);

        if (r < 0)
                return r;
        report_differences(&list->now, &next, each, userdata);
        mounts_clear(&list->now);
        list->now = next;
        return 0;
}

int mount_list_open(const char *file, struct mount_list **ret)
{
        _cleanup_(mount_list_close_pointer) struct mount_list *list = calloc(1, sizeof(*list));
        int r;

        if (!list)
                return -ENOMEM;
        list->fd = open(file, O_RDONLY | O_CLOEXEC);
        if (list->fd < 0)
                return -errno;
        r = mounts_read(list->fd, &list->now);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(list);
        return 0;
}

struct mount_list *mount_list_close(struct mount_list *list)
{
        if (!list)
                return NULL;
        close_fd(list->fd);
        mounts_clear(&list->now);
        free(list);
        return NULL;
}

int mount_list_fd(const struct mount_list *list)
{
        return list->fd;
}
