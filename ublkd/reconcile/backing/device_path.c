/* SPDX-License-Identifier: MIT */
/* Watches whether the paths of a device's spec still lead to the stores of its disk.
 *
 * A disk keeps its stores, so nothing changes for its openers when a path leads elsewhere. But after a
 * reboot ublkd has only the paths: the administrator must know while the right file can still be found. */
#include "ublkd/reconcile/backing/device_path.h"
#include "ublkd/reconcile/backing/device_backing.h"
#include "ublkd/reconcile/backing/kept_store.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/parts/reconciler_queue.h"
#include "ublkd/reconcile/view/path_condition.h"

#include "ublkd/store/device_change.h"
#include "ublkd/model/device_spec_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#define PATH_FOREACH(path, device)                                                                           \
        for (struct watched_path *path = (device)->path.paths;                                               \
                path < (device)->path.paths + (device)->path.count; path++)

/* ---- what is known ---- */

/* Return what was found at the path; NULL: it is not watched, or there was no look yet. */
static const struct path_view *view_of(const struct watched_path *path)
{
        return path->watch ? path_watch_view(path->watch) : NULL;
}

/* NULL: the device has other stores than when its paths were watched last. */
static const struct kept_store *store_of(const struct watched_path *path)
{
        const struct device_backing *backing = &path->device->backing;

        return path->number < backing->count ? &backing->stores[path->number] : NULL;
}

static struct path_facts facts_of(const struct watched_path *path, const struct path_view *view)
{
        const struct kept_store *store = store_of(path);

        return (struct path_facts){
                .view = view,
                .held = store && store->held,
                .serving = path->device->view.facts.worker == PLAN_WORKER_SERVING,
                .refused = store && !backing_identity_is_empty(&store->refused),
        };
}

static enum path_state state_of(const struct watched_path *path)
{
        const struct path_view *view = view_of(path);
        struct path_facts facts;

        if (!view)
                return PATH_UNKNOWN;
        facts = facts_of(path, view);
        return path_condition_state(&facts);
}

/* Write the sentence about a path that there was a look at, which the caller frees. Return 0 or -ENOMEM. */
static int explain(const struct watched_path *path, const struct device_record *record,
        const struct path_view *view, char **ret)
{
        struct path_facts facts = facts_of(path, view);
        const struct kept_store *store = store_of(path);
        _cleanup_free_ char *name = NULL;
        int n;

        n = asprintf(&name, "%s%s%s%s", path_watch_path(path->watch), path->place ? " (" : "",
                path->place ? path->place : "", path->place ? ")" : "");
        if (n < 0) {
                name = NULL;
                return -ENOMEM;
        }
        facts.number = record->number;
        facts.path = name;
        facts.store = path_watch_store(path->watch);
        facts.unnamed = store && !facts.store->is_disk && kept_store_is_unnamed(store);
        return path_condition_explain(&facts, ret);
}

/* ---- of all paths ---- */

/* Return whether the first state is the one that is to be known first. */
static bool is_worse(enum path_state one, enum path_state other)
{
        static const int ranks[_PATH_STATE_MAX] = {
                [PATH_SAME] = 0, [PATH_UNKNOWN] = 1, [PATH_GONE] = 2, [PATH_OTHER] = 3};

        return ranks[one] > ranks[other];
}

/* Return whether `next` (NULL: any) has the path as it is. */
static bool stays_in(const struct watched_path *path, const struct device_spec *next)
{
        const char *name = next ? device_spec_store_path(next, path->number) : NULL;

        return !next || !path->watch || (name && strcmp(path_watch_path(path->watch), name) == 0);
}

enum path_state device_path_state(const struct managed_device *device, const struct device_spec *next)
{
        enum path_state worst = device->path.count > 0 ? PATH_SAME : PATH_UNKNOWN;

        PATH_FOREACH(path, device)
        {
                enum path_state state = state_of(path);

                if (stays_in(path, next) && is_worse(state, worst))
                        worst = state;
        }
        return worst;
}

unsigned device_path_count(const struct managed_device *device)
{
        return device->path.count;
}

struct path_room device_path_room(const struct managed_device *device, unsigned number)
{
        const struct path_view *view = view_of(&device->path.paths[number]);

        return view ? view->room : (struct path_room){};
}

bool device_path_was_low(const struct managed_device *device, unsigned number)
{
        return device->path.paths[number].low;
}

void device_path_note_low(struct managed_device *device, unsigned number, bool low)
{
        device->path.paths[number].low = low;
}

const char *device_path_place(const struct managed_device *device, unsigned number)
{
        return device->path.paths[number].place;
}

/* Append a sentence to *text. Return 0 or -ENOMEM, with *text as it was. */
static int append(char **text, const char *sentence)
{
        char *longer;

        if (asprintf(&longer, "%s%s%s", *text, **text ? " " : "", sentence) < 0)
                return -ENOMEM;
        free(*text);
        *text = longer;
        return 0;
}

/* Of several paths the look at one can be still to come. The other ones have their sentences meanwhile. */
static int explain_unseen(const struct watched_path *path, char **ret)
{
        int n = asprintf(ret, "ublkd has not looked yet where %s (%s) leads.", path_watch_path(path->watch),
                path->place);

        return n < 0 ? -ENOMEM : 0;
}

/* Write the sentences of all paths with that status: "" if there was no look at the only one. */
static int explain_all(const struct managed_device *device, const struct device_record *record,
        enum condition_status status, char **ret)
{
        _cleanup_free_ char *text = strdup("");
        int r = text ? 0 : -ENOMEM;

        PATH_FOREACH(path, device)
        {
                const struct path_view *view = view_of(path);
                _cleanup_free_ char *sentence = NULL;

                if (r < 0 || (!view && !(path->watch && path->place))
                        || path_condition_kind(state_of(path))->status != status)
                        continue;
                r = view ? explain(path, record, view, &sentence) : explain_unseen(path, &sentence);
                if (r >= 0)
                        r = append(&text, sentence);
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(text);
        return 0;
}

int device_path_condition(
        const struct managed_device *device, const struct device_record *record, struct device_condition *ret)
{
        const struct path_kind *kind = path_condition_kind(device_path_state(device, NULL));
        _cleanup_free_ char *text = NULL;
        int r = explain_all(device, record, kind->status, &text);

        return r < 0 || !*text ? r : device_condition_set(ret, kind->status, kind->reason, "%s", text);
}

/* ---- the watches ---- */

/* A path that leads to the store makes an event only after it did not. */
static bool is_news(const struct watched_path *path, enum path_state state)
{
        return path_condition_kind(state)->is_event && state != path->announced
               && (state != PATH_SAME || path->announced != PATH_UNKNOWN);
}

static void on_changed(void *userdata, const struct path_view *view)
{
        struct watched_path *path = userdata;
        struct managed_device *device = path->device;
        const struct device_record *record = device_store_get(device->env->config.store, device->id.name);
        const struct path_facts facts = facts_of(path, view);
        enum path_state state = path_condition_state(&facts);
        _cleanup_free_ char *sentence = NULL;

        if (!record)
                return;
        if (is_news(path, state) && explain(path, record, view, &sentence) >= 0) {
                device_emit(device, path_condition_kind(state)->type, path_condition_kind(state)->reason,
                        "%s", sentence);
                path->announced = state;
        }
        device_wake(device);
}

/* Return false if the store is unknown. */
static bool served_store(const struct kept_store *store, struct path_store *ret)
{
        const struct worker_store *at = &store->at;

        if (!store->known)
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

static void drop_one(struct watched_path *path)
{
        path_watch_free(path->watch);
        free(path->place);
        *path = (struct watched_path){.device = path->device, .number = path->number};
}

void device_path_drop(struct managed_device *device)
{
        PATH_FOREACH(path, device)
        drop_one(path);
        free(device->path.paths);
        device->path = (struct device_path){};
}

/* Make room for the paths of all stores. Return false on ENOMEM: the next turn tries again. */
static bool make_room(struct managed_device *device)
{
        unsigned count = device->backing.count;

        device_path_drop(device);
        device->path.paths = calloc(count, sizeof(*device->path.paths));
        if (!device->path.paths)
                return false;
        device->path.count = count;
        for (unsigned i = 0; i < count; i++)
                device->path.paths[i] = (struct watched_path){.device = device, .number = i};
        return true;
}

/* Return 0 or -ENOMEM. */
static int print_place(const struct device_record *record, unsigned number, char **ret)
{
        char pointer[TARGET_POINTER_SIZE];

        if (!device_spec_has_list(record->spec))
                return 0;
        device_spec_store_pointer(record->spec, number, pointer);
        if (asprintf(ret, "%s/path", pointer) >= 0)
                return 0;
        *ret = NULL;
        return -ENOMEM;
}

static void follow_one(struct watched_path *path, const struct device_record *record)
{
        struct path_watches *watches = path->device->env->config.path_watches;
        const char *name = device_spec_store_path(record->spec, path->number);
        struct path_store store;

        if (!name || !served_store(store_of(path), &store)) {
                drop_one(path);
                return;
        }
        if (is_watched(path->watch, name, &store))
                return;
        drop_one(path);
        if (print_place(record, path->number, &path->place) < 0
                || path_watch_new(watches, name, &store, on_changed, path, &path->watch) < 0)
                drop_one(path); /* the next turn tries again */
}

/* Return whether the stores of the device are those of the spec, and one of them can be watched. The path of a user's
 * file is not looked at with the rights of ublkd: what the user would learn, or have hang, is not the user's. */
static bool can_be_watched(const struct managed_device *device, const struct device_record *record)
{
        const struct device_backing *backing = &device->backing;

        if (!record->spec || !device_backing_fits(backing, record->spec)
                || device_store_user(record, record->spec) > 0)
                return false;
        return backing->is_list || (backing->stores[0].known && device_spec_path(record->spec));
}

/* A disk that ublkd will remove keeps its watches, with the paths that it was created with. */
void device_path_follow(struct managed_device *device, const struct device_record *record)
{
        bool is_there = device->view.facts.kernel == KERNEL_LIVE || device->view.facts.kernel == KERNEL_DOWN;

        if (!device->env->config.path_watches || (is_there && device->view.facts.want == WANT_ABSENT))
                return;
        if (!is_there || !can_be_watched(device, record)) {
                device_path_drop(device);
                return;
        }
        if (device->path.count != device->backing.count && !make_room(device))
                return;
        PATH_FOREACH(path, device)
        follow_one(path, record);
}
