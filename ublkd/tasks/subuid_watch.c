/* SPDX-License-Identifier: MIT */
/* Watches /etc/subuid. useradd(8) writes another file and renames it, so the directory is watched.
 * Without the file no user would have a range, so its removal counts at a reload only: an editor may write the next one in a
 * moment. */
#include "ublkd/tasks/subuid_watch.h"

#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

struct subuid_watch {
        sd_event_source *source;
        void (*changed)(void *userdata);
        void *userdata;
};

DEFINE_CLEANUP(struct subuid_watch, subuid_watch_free);

/* Also where changes were lost. */
static bool is_of_file(const struct inotify_event *change)
{
        return (change->mask & IN_Q_OVERFLOW) || (change->len > 0 && strcmp(change->name, "subuid") == 0);
}

static int on_change(sd_event_source *source _unused_, const struct inotify_event *change, void *userdata)
{
        struct subuid_watch *watch = userdata;

        if (is_of_file(change))
                watch->changed(watch->userdata);
        return 0;
}

int subuid_watch_new(sd_event *event, const char *directory, void (*changed)(void *userdata), void *userdata,
        struct subuid_watch **ret)
{
        _cleanup_(subuid_watch_free_pointer) struct subuid_watch *watch = calloc(1, sizeof(*watch));
        int r;

        if (!watch)
                return -ENOMEM;
        watch->changed = changed;
        watch->userdata = userdata;
        r = sd_event_add_inotify(event, &watch->source, directory, IN_CLOSE_WRITE | IN_MOVED_TO | IN_ONLYDIR,
                on_change, watch);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(watch);
        return 0;
}

struct subuid_watch *subuid_watch_free(struct subuid_watch *watch)
{
        if (!watch)
                return NULL;
        sd_event_source_disable_unref(watch->source);
        free(watch);
        return NULL;
}
