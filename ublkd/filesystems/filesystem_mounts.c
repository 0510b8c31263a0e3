/* SPDX-License-Identifier: MIT */
/* Watches the mounts of ublkd. A change of any mount on the host is an event; many of them are one look, which
 * asks the kernel about the mounts of ublkd alone. */
#include "ublkd/filesystems/filesystem_mounts.h"
#include "ublkd/nodes/mount_users.h"

#include "ublkd/base/cleanup.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>

enum { LOOK_INTERVAL_USEC = 1000 * 1000, LOOK_BURST = 5 };

struct filesystem_mounts {
        struct device_store *store;
        const char *top;
        int list; /* of all mounts; it is polled, and not read */
        sd_event_source *changed;
};

DEFINE_CLEANUP(struct filesystem_mounts, filesystem_mounts_free);

int filesystem_mounts_place(const char *runtime_dir, char ret[static FILESYSTEM_PATH_SIZE])
{
        _cleanup_free_ char *path = realpath(runtime_dir, NULL);
        static const char end[] = "-mounts";

        if (!path)
                return -errno;
        if (strlen(path) + sizeof(end) > FILESYSTEM_PATH_SIZE)
                return -ENAMETOOLONG;
        snprintf(ret, FILESYSTEM_PATH_SIZE, "%s%s", path, end);
        return 0;
}

/* Return 1: something is mounted there; 0: nothing is; -errno. Nothing asks the file system: the loop waits for none. */
static int is_mounted(int top, const char *name)
{
        struct statx info;

        if (statx(top, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, STATX_TYPE, &info)
                < 0)
                return errno == ENOENT ? 0 : -errno;
        return (info.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

static void set_mount(
        const struct filesystem_mounts *mounts, const struct device_record *record, bool is_there)
{
        char path[MOUNT_PATH_SIZE] = "";

        if (is_there)
                snprintf(path, sizeof(path), "%s/%s", mounts->top, record->uid);
        (void)device_store_set_mount(mounts->store, record->name, path);
}

/* Look at the mounts of ublkd, however many devices there are. What cannot be looked at stays as it is known; the next
 * change is another look. */
static void look_below(const struct filesystem_mounts *mounts, DIR *top)
{
        const struct dirent *entry;

        DEVICE_STORE_FOREACH_MOUNTED (record, mounts->store)
                if (is_mounted(dirfd(top), record->uid) == 0)
                        set_mount(mounts, record, false);
        while ((entry = readdir(top))) {
                const struct device_record *record = device_store_find_uid(mounts->store, entry->d_name);

                if (record && !*record->mount && is_mounted(dirfd(top), record->uid) > 0)
                        set_mount(mounts, record, true);
        }
}

void filesystem_mounts_look(struct filesystem_mounts *mounts)
{
        _cleanup_closedir_ DIR *top = opendir(mounts->top);

        if (top)
                look_below(mounts, top);
        else if (errno == ENOENT)
                DEVICE_STORE_FOREACH_MOUNTED (record, mounts->store)
                        set_mount(mounts, record, false);
}

static int on_changed(
        sd_event_source *source _unused_, int fd _unused_, uint32_t events _unused_, void *userdata)
{
        filesystem_mounts_look(userdata);
        return 0;
}

int filesystem_mounts_new(
        sd_event *event, struct device_store *store, const char *top, struct filesystem_mounts **ret)
{
        _cleanup_(filesystem_mounts_free_pointer) struct filesystem_mounts *mounts =
                calloc(1, sizeof(*mounts));
        int r;

        if (!mounts)
                return -ENOMEM;
        *mounts = (struct filesystem_mounts){.store = store, .top = top, .list = -1};
        mounts->list = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
        if (mounts->list < 0)
                return -errno;
        r = sd_event_add_io(event, &mounts->changed, mounts->list, EPOLLPRI, on_changed, mounts);
        if (r >= 0)
                r = sd_event_source_set_ratelimit(mounts->changed, LOOK_INTERVAL_USEC, LOOK_BURST);
        if (r < 0)
                return r;
        filesystem_mounts_look(mounts);
        mount_users_clean(top);
        *ret = TAKE_PTR(mounts);
        return 0;
}

struct filesystem_mounts *filesystem_mounts_free(struct filesystem_mounts *mounts)
{
        if (!mounts)
                return NULL;
        sd_event_source_disable_unref(mounts->changed);
        close_fd(mounts->list);
        free(mounts);
        return NULL;
}
