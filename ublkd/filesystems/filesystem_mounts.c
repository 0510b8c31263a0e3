/* SPDX-License-Identifier: MIT */
/* Watches the mounts of ublkd. A change of any mount on the host is an event; many of them are one look. */
#include "ublkd/filesystems/filesystem_mounts.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/kernel/mount_line.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>

enum { LOOK_INTERVAL_USEC = 1000 * 1000, LOOK_BURST = 5 };

struct filesystem_mounts {
        struct device_store *store;
        const char *top;
        int list; /* of the kernel; it polls, and is opened again for each look */
        sd_event_source *changed;
};

DEFINE_CLEANUP(struct filesystem_mounts, filesystem_mounts_free);

/* The paths of mounts that are there; all others are gone. */
struct seen {
        char **paths;
        size_t count;
};

static void seen_clear(struct seen *seen)
{
        for (size_t i = 0; i < seen->count; i++)
                free(seen->paths[i]);
        free(seen->paths);
}

static int seen_add(struct seen *seen, const char *path)
{
        char **more = realloc(seen->paths, (seen->count + 1) * sizeof(*more));

        if (!more)
                return -ENOMEM;
        seen->paths = more;
        seen->paths[seen->count] = strdup(path);
        return seen->paths[seen->count] ? (seen->count++, 0) : -ENOMEM;
}

static bool seen_has(const struct seen *seen, const char *path)
{
        for (size_t i = 0; i < seen->count; i++)
                if (strcmp(seen->paths[i], path) == 0)
                        return true;
        return false;
}

static int read_mounts(const struct filesystem_mounts *mounts, struct seen *ret)
{
        _cleanup_fclose_ FILE *file = fopen("/proc/self/mountinfo", "re");
        _cleanup_free_ char *line = NULL;
        size_t size = 0, length = strlen(mounts->top);
        int r = file ? 0 : -errno;

        while (r >= 0 && file && getline(&line, &size, file) > 0) {
                struct mount_line mount;

                line[strcspn(line, "\n")] = '\0';
                if (mount_line_parse(line, &mount) >= 0 && strncmp(mount.point, mounts->top, length) == 0
                        && mount.point[length] == '/')
                        r = seen_add(ret, mount.point);
        }
        return r;
}

void filesystem_mounts_look(struct filesystem_mounts *mounts)
{
        _cleanup_(seen_clear) struct seen seen = {};
        char path[MOUNT_PATH_SIZE];

        if (read_mounts(mounts, &seen) < 0)
                return; /* what was known stays; the next change is another look */
        DEVICE_STORE_FOREACH (record, mounts->store) {
                int n = snprintf(path, sizeof(path), "%s/%s", mounts->top, record->uid);

                if (n > 0 && (size_t)n < sizeof(path))
                        (void)device_store_set_mount(
                                mounts->store, record->name, seen_has(&seen, path) ? path : "");
        }
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
