/* SPDX-License-Identifier: MIT */
/* Whether the path of a device's spec still leads to what its disk is served from.
 *
 * A disk keeps its store, so nothing changes for its openers when the path leads elsewhere. But after a
 * reboot the path is all that there is: the administrator has to know it while the right file can still be
 * found. */
#include "ublkd/reconcile/parts/device_path.h"
#include "ublkd/reconcile/parts/device_backing.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/parts/reconciler_queue.h"

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

/* ---- what is known ---- */

/* While it is open its inode number, or its number as a disk, cannot be given to another one. */
static bool is_open(const struct managed_device *device)
{
        return device->backing.held || device->view.facts.worker == PLAN_WORKER_SERVING;
}

/* A number that is the same says nothing once nobody has the store open: then the next worker compares what
 * cannot be given out again. */
static enum path_state state_of(const struct managed_device *device, const struct path_view *view)
{
        if (view->state != PATH_SAME || is_open(device))
                return view->state;
        return backing_identity_is_empty(&device->backing.refused) ? PATH_UNKNOWN : PATH_OTHER;
}

enum path_state device_path_state(const struct managed_device *device)
{
        const struct path_view *view = device->path.watch ? path_watch_view(device->path.watch) : NULL;

        return view ? state_of(device, view) : PATH_UNKNOWN;
}

/* What the administrator has to know of the store to do the right thing. */
enum fate {
        FATE_DISK,    /* a block device */
        FATE_NAMED,   /* a file that is open, and has a name somewhere */
        FATE_UNNAMED, /* a file that only the disk still has */
        FATE_UNKNOWN, /* a file that is open; whether it has a name is not known */
        FATE_CLOSED,  /* a file that nobody has open: what has no name is gone */
        _FATE_MAX
};

static enum fate fate_of(const struct managed_device *device, const struct path_store *store)
{
        return store->is_disk                                     ? FATE_DISK
               : device_backing_is_unnamed(&device->backing)      ? FATE_UNNAMED
               : device->backing.held                             ? FATE_NAMED
               : device->view.facts.worker == PLAN_WORKER_SERVING ? FATE_UNKNOWN
                                                                  : FATE_CLOSED;
}

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

/* What becomes of the disk, and what the administrator can do about it. After a reboot the path is all that
 * ublkd has. */
static const char *const advice[_FATE_MAX] = {
        [FATE_DISK] =
                "Let this path lead to that block device again before the next reboot, or, once the disk "
                "is unmounted, change the path in the spec to one that does.",
        [FATE_NAMED] =
                "Move that file back to this path before the next reboot, or, once the disk is unmounted, "
                "change the path in the spec to where it is.",
        [FATE_UNNAMED] =
                "That file was deleted, and only this disk has its data: unmount it, and copy them to "
                "another file, before the disk is taken away or the machine is rebooted.",
        [FATE_UNKNOWN] =
                "Move that file back to this path before the next reboot. If it was deleted, only this "
                "disk has its data: unmount it, and copy them to another file before that.",
        [FATE_CLOSED] =
                "Bring that file back to this path, and the disk goes on. If it was deleted, its data are "
                "gone, unless there is a copy of it elsewhere.",
};

static int explain_served(const struct managed_device *device, const struct device_record *record,
        const struct path_store *store, char **ret)
{
        if (!is_open(device))
                return asprintf(ret,
                        "/dev/ublkb%d has no worker, and its I/O waits for the %s that it was made on",
                        record->number, kind_of(store));
        return asprintf(ret, "/dev/ublkb%d goes on with the %s that it was made on, and %s", record->number,
                kind_of(store),
                device->backing.held ? "so does its next worker" : "its next worker refuses every other one");
}

static int explain_other(const struct managed_device *device, const struct path_view *view,
        const char *served, enum fate fate, char **ret)
{
        const char *path = path_watch_path(device->path.watch);
        const struct path_store *store = path_watch_store(device->path.watch);
        char here[STORE_TEXT_SIZE] = "neither a file nor a block device", there[STORE_TEXT_SIZE];

        if (view->state == PATH_SAME)
                return asprintf(ret,
                        "What is at %s is another %s than the one that the disk was made on, with the "
                        "number of that one (%s). %s. %s",
                        path, kind_of(store), store_text(store, there), served, advice[fate]);
        if (view->is_store)
                (void)store_text(&view->found, here);
        return asprintf(ret,
                "What is at %s is not the %s that the disk was made on: that is %s, and at the path is now "
                "%s. %s. %s",
                path, kind_of(store), store_text(store, there), here, served, advice[fate]);
}

static int explain_unknown(
        const struct managed_device *device, const struct path_view *view, const char *served, char **ret)
{
        const char *path = path_watch_path(device->path.watch);

        if (view->state == PATH_SAME)
                return asprintf(ret,
                        "Whether %s leads to the %s that the disk was made on is found out by its next "
                        "worker. %s.",
                        path, kind_of(path_watch_store(device->path.watch)), served);
        return asprintf(ret, "Looking where %s leads failed: %s. %s. It is tried again.", path,
                strerror(view->error), served);
}

/* 0 and a sentence, or -ENOMEM. */
static int explain(const struct managed_device *device, const struct device_record *record,
        const struct path_view *view, char **ret)
{
        const char *path = path_watch_path(device->path.watch);
        const struct path_store *store = path_watch_store(device->path.watch);
        enum path_state state = state_of(device, view);
        enum fate fate = fate_of(device, store);
        _cleanup_free_ char *served = NULL;
        int n;

        if (explain_served(device, record, store, &served) < 0) {
                served = NULL;
                return -ENOMEM;
        }
        if (state == PATH_OTHER)
                n = explain_other(device, view, served, fate, ret);
        else if (state == PATH_GONE)
                n = asprintf(ret, "There is nothing at %s any more (%s). %s. %s", path, strerror(view->error),
                        served, advice[fate]);
        else if (state == PATH_SAME)
                n = asprintf(ret, "%s leads to the %s that is served.", path, kind_of(store));
        else
                n = explain_unknown(device, view, served, ret);
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
        return device_condition_set(ret, kinds[state_of(device, view)].status,
                kinds[state_of(device, view)].reason, "%s", sentence);
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
        const struct device_record *record = device_store_get(device->env->config.store, device->id.name);
        _cleanup_free_ char *sentence = NULL;
        enum path_state state = state_of(device, view);

        if (!record)
                return;
        if (is_news(&device->path, state) && explain(device, record, view, &sentence) >= 0) {
                device_tell(device, kinds[state].type, kinds[state].reason, "%s", sentence);
                device->path.announced = state;
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
        struct path_watches *watches = device->env->config.path_watches;
        bool is_there = device->view.facts.kernel == KERNEL_LIVE || device->view.facts.kernel == KERNEL_DOWN;
        const char *path = path_of(record);
        struct path_store store;

        if (!watches || (is_there && device->view.facts.want == WANT_ABSENT))
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
