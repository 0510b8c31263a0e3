/* SPDX-License-Identifier: MIT */
/* Watches the entries of the runtime directory, and of its folder "workers".
 *
 * A process that removes a directory removes its entries first. So the watch checks the directory after a
 * quiet period: that process would also remove a directory that the watch recreates too early. */
#include "ublkd/runtime/runtime_watch.h"

#include "ublkd/runtime/runtime_names.h"

#include <limits.h>
#include <stdio.h>
#include <sys/inotify.h>

enum {
        QUIET_USEC = 500 * 1000,
        RETRY_USEC = 5 * 1000 * 1000,
};

struct runtime_watch {
        sd_event *event;
        struct runtime_dir *dir;
        sd_event_source *changes; /* NULL: the directory cannot be watched */
        sd_event_source *workers; /* the same of its folder "workers"; begin() makes it last */
        sd_event_source *quiet;
        void (*changed)(void *userdata, enum runtime_change change, int error);
        void *userdata;
};

DEFINE_CLEANUP(struct runtime_watch, runtime_watch_free);

static int look_in(const struct runtime_watch *watch, uint64_t usec)
{
        int r = sd_event_source_set_time_relative(watch->quiet, usec);

        return r < 0 ? r : sd_event_source_set_enabled(watch->quiet, SD_EVENT_ONESHOT);
}

static int on_change(
        sd_event_source *source _unused_, const struct inotify_event *change _unused_, void *userdata)
{
        return look_in(userdata, QUIET_USEC);
}

/* ublkd replaces a file by renaming one whose name begins with a dot. */
static int on_worker_change(
        sd_event_source *source _unused_, const struct inotify_event *change, void *userdata)
{
        return change->len > 0 && change->name[0] != '.' ? look_in(userdata, QUIET_USEC) : 0;
}

static void end(struct runtime_watch *watch)
{
        watch->changes = sd_event_source_disable_unref(watch->changes);
        watch->workers = sd_event_source_disable_unref(watch->workers);
}

/* Watch the directory that is there now. */
static int begin(struct runtime_watch *watch)
{
        char workers[PATH_MAX];
        int r, n = snprintf(
                       workers, sizeof(workers), "%s/" RUNTIME_WORKERS_NAME, runtime_dir_path(watch->dir));

        end(watch);
        r = sd_event_add_inotify(watch->event, &watch->changes, runtime_dir_path(watch->dir),
                IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR, on_change, watch);
        if (r < 0 || (size_t)n >= sizeof(workers))
                return r < 0 ? r : -ENAMETOOLONG;
        return sd_event_add_inotify(watch->event, &watch->workers, workers,
                IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR, on_worker_change, watch);
}

static int on_quiet(sd_event_source *source _unused_, uint64_t now _unused_, void *userdata)
{
        struct runtime_watch *watch = userdata;
        enum runtime_change change = RUNTIME_KEPT;
        int r = 0;

        if (runtime_dir_check(watch->dir) < 0) {
                end(watch);
                r = runtime_dir_remake(watch->dir);
                change = r < 0 ? RUNTIME_GONE : RUNTIME_REMADE;
        }
        if (r >= 0 && !watch->workers)
                r = begin(watch);
        watch->changed(watch->userdata, change, r);
        return r < 0 ? look_in(watch, RETRY_USEC) : 0;
}

int runtime_watch_new(sd_event *event, struct runtime_dir *dir,
        void (*changed)(void *userdata, enum runtime_change change, int error), void *userdata,
        struct runtime_watch **ret)
{
        _cleanup_(runtime_watch_free_pointer) struct runtime_watch *watch = calloc(1, sizeof(*watch));
        int r;

        if (!watch)
                return -ENOMEM;
        watch->event = sd_event_ref(event);
        watch->dir = dir;
        watch->changed = changed;
        watch->userdata = userdata;
        r = sd_event_add_time(event, &watch->quiet, CLOCK_MONOTONIC, 0, 0, on_quiet, watch);
        if (r >= 0)
                r = sd_event_source_set_enabled(watch->quiet, SD_EVENT_OFF);
        if (r >= 0)
                r = begin(watch);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(watch);
        return 0;
}

struct runtime_watch *runtime_watch_free(struct runtime_watch *watch)
{
        if (!watch)
                return NULL;
        end(watch);
        sd_event_source_disable_unref(watch->quiet);
        sd_event_unref(watch->event);
        free(watch);
        return NULL;
}
