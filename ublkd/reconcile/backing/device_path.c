/* SPDX-License-Identifier: MIT */
/* Watches whether the path of a device's spec still leads to the store of its disk.
 *
 * A disk keeps its store, so nothing changes for its openers when the path leads elsewhere. But after a
 * reboot ublkd has only the path: the administrator must know while the right file can still be found. */
#include "ublkd/reconcile/backing/device_path.h"
#include "ublkd/reconcile/backing/device_backing.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/parts/reconciler_queue.h"
#include "ublkd/reconcile/view/path_condition.h"

#include "ublkd/store/device_change.h"
#include "ublkd/model/device_spec_store.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

/* ---- what is known ---- */

static struct path_facts facts_of(const struct managed_device *device, const struct path_view *view)
{
        return (struct path_facts){
                .view = view,
                .held = device->backing.single.held,
                .serving = device->view.facts.worker == PLAN_WORKER_SERVING,
                .refused = !backing_identity_is_empty(&device->backing.single.refused),
        };
}

/* Facts that a sentence names beside the state. */
static void add_names(
        struct path_facts *facts, const struct managed_device *device, const struct device_record *record)
{
        facts->number = record->number;
        facts->path = path_watch_path(device->path.watch);
        facts->store = path_watch_store(device->path.watch);
        facts->unnamed = !facts->store->is_disk && device_backing_is_unnamed(&device->backing);
}

enum path_state device_path_state(const struct managed_device *device)
{
        const struct path_view *view = device->path.watch ? path_watch_view(device->path.watch) : NULL;
        struct path_facts facts;

        if (!view)
                return PATH_UNKNOWN;
        facts = facts_of(device, view);
        return path_condition_state(&facts);
}

struct path_room device_path_room(const struct managed_device *device)
{
        const struct path_view *view = device->path.watch ? path_watch_view(device->path.watch) : NULL;

        return view ? view->room : (struct path_room){};
}

int device_path_condition(
        const struct managed_device *device, const struct device_record *record, struct device_condition *ret)
{
        const struct path_view *view = device->path.watch ? path_watch_view(device->path.watch) : NULL;
        struct path_facts facts;

        if (!view)
                return 0;
        facts = facts_of(device, view);
        add_names(&facts, device, record);
        return path_condition(&facts, ret);
}

/* ---- the watch ---- */

/* A path that leads to the store makes an event only after it did not. */
static bool is_news(const struct device_path *path, enum path_state state)
{
        return path_condition_kind(state)->is_event && state != path->announced
               && (state != PATH_SAME || path->announced != PATH_UNKNOWN);
}

static void on_changed(void *userdata, const struct path_view *view)
{
        struct managed_device *device = userdata;
        const struct device_record *record = device_store_get(device->env->config.store, device->id.name);
        _cleanup_free_ char *sentence = NULL;
        struct path_facts facts = facts_of(device, view);
        enum path_state state = path_condition_state(&facts);

        if (!record)
                return;
        add_names(&facts, device, record);
        if (is_news(&device->path, state) && path_condition_explain(&facts, &sentence) >= 0) {
                device_emit(device, path_condition_kind(state)->type, path_condition_kind(state)->reason,
                        "%s", sentence);
                device->path.announced = state;
        }
        device_wake(device);
}

/* Return the path in the spec; NULL: the target has none. */
static const char *path_of(const struct device_record *record)
{
        return device_spec_path(record->spec);
}

/* Return false if the store is unknown. */
static bool served_store(const struct managed_device *device, struct path_store *ret)
{
        const struct worker_store *at = &device->backing.single.at;

        if (!device->backing.single.known)
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

void device_path_drop(struct managed_device *device)
{
        path_watch_free(device->path.watch);
        device->path = (struct device_path){};
}

/* A disk that ublkd will remove keeps its watch, with the path that it was created with. The path of a user's file is not
 * looked at with the rights of ublkd: what the user would learn, or have hang, is not the user's. */
void device_path_follow(struct managed_device *device, const struct device_record *record)
{
        struct path_watches *watches = device->env->config.path_watches;
        bool is_there = device->view.facts.kernel == KERNEL_LIVE || device->view.facts.kernel == KERNEL_DOWN;
        const char *path = path_of(record);
        struct path_store store;

        if (!watches || (is_there && device->view.facts.want == WANT_ABSENT))
                return;
        if (!is_there || !path || device_store_user(record, record->spec) > 0
                || !served_store(device, &store)) {
                device_path_drop(device);
                return;
        }
        if (is_watched(device->path.watch, path, &store))
                return;
        device_path_drop(device);
        /* on failure the next turn tries again */
        (void)path_watch_new(watches, path, &store, on_changed, device, &device->path.watch);
}
