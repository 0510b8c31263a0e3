/* SPDX-License-Identifier: MIT */
/* Whether the path of a device's spec still leads to what its disk is served from.
 *
 * A disk keeps its store, so nothing changes for its openers when the path leads elsewhere. But after a
 * reboot the path is all that there is: the administrator has to know it while the right file can still be
 * found. */
#include "ublkd/reconcile/device_path.h"

#include "ublkd/reconcile/managed_device.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

enum { STORE_TEXT_SIZE = 80 };

/* What each state is called, as a condition and as an event. */
static const struct {
        enum condition_status status;
        enum condition_reason reason;
        bool is_event;
        enum event_type type;
} kinds[_PATH_STATE_MAX] = {
        [PATH_UNKNOWN] = {CONDITION_UNKNOWN, REASON_PATH_UNKNOWN,         false, EVENT_NORMAL },
        [PATH_SAME] = {CONDITION_TRUE,    REASON_PATH_LEADS_TO_STORE,  true,  EVENT_NORMAL },
        [PATH_OTHER] = {CONDITION_FALSE,   REASON_PATH_LEADS_ELSEWHERE, true,  EVENT_WARNING},
        [PATH_GONE] = {CONDITION_FALSE,   REASON_PATH_GONE,            true,  EVENT_WARNING},
};

/* ---- sentences ---- */

static const char *kind_of(const struct path_store *store)
{
        return store->is_disk ? "block device" : "file";
}

/* "inode 12 of device 8:1", "block device 8:16". */
static const char *store_text(const struct path_store *store, char text[static STORE_TEXT_SIZE])
{
        if (store->is_disk)
                snprintf(text, STORE_TEXT_SIZE, "block device %u:%u", major(store->device),
                        minor(store->device));
        else
                snprintf(text, STORE_TEXT_SIZE, "inode %llu of device %u:%u",
                        (unsigned long long)store->inode, major(store->device), minor(store->device));
        return text;
}

/* What becomes of the disk. */
static int explain_served(const struct managed_device *device, const struct device_record *record,
        const struct path_store *store, char **ret)
{
        return asprintf(ret, "/dev/ublkb%d goes on with the %s that it was made on, and %s", record->number,
                kind_of(store),
                device->backing.held ? "so does its next worker" : "its next worker refuses every other one");
}

/* What the administrator can do about it. After a reboot the path is all that ublkd has. */
static const char *advice(const struct path_store *store)
{
        return store->is_disk
                       ? "Let this path lead to that block device again before the next reboot, or change "
                         "the path in the spec to one that does."
                       : "Move that file back to this path before the next reboot, or change the path in "
                         "the spec to where it is.";
}

static int explain_other(const struct path_view *view, const struct path_store *store, const char *path,
        const char *served, char **ret)
{
        char here[STORE_TEXT_SIZE] = "neither a file nor a block device", there[STORE_TEXT_SIZE];

        if (view->is_store)
                (void)store_text(&view->found, here);
        return asprintf(ret,
                "What is at %s is not the %s that is served: that is %s, and at the path is now %s. %s. %s",
                path, kind_of(store), store_text(store, there), here, served, advice(store));
}

static int explain_gone(const struct path_view *view, const struct path_store *store, const char *path,
        const char *served, char **ret)
{
        return asprintf(ret, "There is nothing at %s any more (%s). %s. %s%s", path, strerror(view->error),
                served, advice(store),
                store->is_disk ? ""
                               : " If it was deleted, only this disk has its data: copy them to another file "
                                 "before that.");
}

/* 0 and a sentence, or -ENOMEM. */
static int explain(const struct managed_device *device, const struct device_record *record,
        const struct path_view *view, char **ret)
{
        const char *path = path_watch_path(device->path.watch);
        const struct path_store *store = path_watch_store(device->path.watch);
        _cleanup_free_ char *served = NULL;
        int n = -1;

        if (explain_served(device, record, store, &served) < 0) {
                served = NULL;
                return -ENOMEM;
        }
        if (view->state == PATH_OTHER)
                n = explain_other(view, store, path, served, ret);
        else if (view->state == PATH_GONE)
                n = explain_gone(view, store, path, served, ret);
        else if (view->state == PATH_SAME)
                n = asprintf(ret, "%s leads to the %s that is served.", path, kind_of(store));
        else
                n = asprintf(ret, "Looking where %s leads failed: %s. %s. It is tried again.", path,
                        strerror(view->error), served);
        return n < 0 ? -ENOMEM : 0;
}

int device_path_condition(
        const struct managed_device *device, const struct device_record *record, struct device_condition *ret)
{
        const struct path_view *view = device->path.watch ? path_watch_view(device->path.watch) : NULL;
        _cleanup_free_ char *sentence = NULL;

        if (!view)
                return 0;
        if (explain(device, record, view, &sentence) < 0)
                return -ENOMEM;
        return device_condition_set(
                ret, kinds[view->state].status, kinds[view->state].reason, "%s", sentence);
}

/* ---- the watch ---- */

/* That it leads where it should is news only after it did not. */
static bool is_news(const struct device_path *path, enum path_state state)
{
        return kinds[state].is_event && state != path->announced
               && (state != PATH_SAME || path->announced != PATH_UNKNOWN);
}

static void on_changed(void *userdata, const struct path_view *view)
{
        struct managed_device *device = userdata;
        const struct device_record *record = device_store_get(device->reconciler->config.store, device->name);
        _cleanup_free_ char *sentence = NULL;

        if (!record)
                return;
        if (is_news(&device->path, view->state) && explain(device, record, view, &sentence) >= 0) {
                device_tell(device, kinds[view->state].type, kinds[view->state].reason, "%s", sentence);
                device->path.announced = view->state;
        }
        device_wake(device);
}

/* NULL: its target has none. */
static const char *path_of(const struct device_record *record)
{
        const struct device_spec *spec = record->spec;
        const struct option_field *option = spec ? option_find(spec->target->options, "path") : NULL;
        const char *path;

        if (!option || option->kind != OPTION_STRING)
                return NULL;
        memcpy(&path, (const char *)spec->target_options + option->offset, sizeof(path));
        return path;
}

/* False: it is not known. */
static bool served_store(const struct managed_device *device, struct path_store *ret)
{
        const struct worker_store *at = &device->backing.at;

        if (!device->backing.known)
                return false;
        *ret = (struct path_store){
                .is_disk = at->inode == 0, .device = makedev(at->major, at->minor), .inode = at->inode};
        return true;
}

static bool is_watched(const struct path_watch *watch, const char *path, const struct path_store *store)
{
        return watch && strcmp(path_watch_path(watch), path) == 0
               && path_store_equal(path_watch_store(watch), store);
}

void device_path_forget(struct managed_device *device)
{
        path_watch_free(device->path.watch);
        device->path = (struct device_path){};
}

/* A disk that is to go keeps its watch, with the path that it was made with. */
void device_path_follow(struct managed_device *device, const struct device_record *record)
{
        struct path_watches *watches = device->reconciler->config.path_watches;
        bool is_there = device->facts.kernel == KERNEL_LIVE || device->facts.kernel == KERNEL_DOWN;
        const char *path = path_of(record);
        struct path_store store;

        if (!watches || (is_there && device->facts.want == WANT_ABSENT))
                return;
        if (!is_there || !path || !served_store(device, &store)) {
                device_path_forget(device);
                return;
        }
        if (is_watched(device->path.watch, path, &store))
                return;
        device_path_forget(device);
        /* what fails here is tried again in the next turn */
        (void)path_watch_new(watches, path, &store, on_changed, device, &device->path.watch);
}
