/* SPDX-License-Identifier: MIT */
/* What the supervisor does when its runtime directory is removed. */
#include "ublkd/tasks/runtime_guard.h"

#include "ublkd/base/log.h"
#include "ublkd/host/runtime_loss.h"
#include "ublkd/runtime/runtime_watch.h"

#include <string.h>

struct runtime_guard {
        struct runtime_guard_config config;
        struct runtime_watch *watch; /* NULL: the directory cannot be watched */
        struct runtime_loss loss;
};

static bool has_files(void *userdata, const char *uid)
{
        return runtime_dir_has_worker(((struct runtime_guard *)userdata)->config.dir, uid);
}

/* Return whether a process has removed files of devices, and not the directory. A record that the keeper could
 * not write was not removed. */
static bool is_part_lost(const struct runtime_guard *guard)
{
        DEVICE_STORE_FOREACH (record, guard->config.store)
                if (record->age == RECORD_CURRENT && record->spec
                        && !record_keeper_is_missing(guard->config.record_keeper, record->uid)
                        && !runtime_dir_has_record(guard->config.dir, record->uid))
                        return true;
        return runtime_loss_is_new(&guard->loss, guard->config.store);
}

static void rewrite(const struct runtime_guard *guard, bool is_part)
{
        const char *path = runtime_dir_path(guard->config.dir);
        int r = record_keeper_rewrite(guard->config.record_keeper);

        disk_marks_rewrite(guard->config.disk_marks);
        if (is_part)
                log_warning(NULL,
                        "Files of devices in the runtime directory %s were removed while ublkd runs; writing "
                        "the records again; the disks are served on, and 'ublkctl host' names workers that "
                        "are to be replaced",
                        path);
        else
                log_warning(NULL,
                        "The runtime directory %s was removed while ublkd runs, and was made again; the "
                        "disks are served on, and 'ublkctl host' names workers that are to be replaced",
                        path);
        if (r < 0)
                log_errno(LOG_WARNING, NULL, r,
                        "Not all records could be written to the runtime directory %s: %s; the next look at "
                        "each device tries again",
                        path, strerror(-r));
}

static void on_change(void *userdata, enum runtime_change change, int error)
{
        struct runtime_guard *guard = userdata;
        const char *path = runtime_dir_path(guard->config.dir);
        bool is_part = change == RUNTIME_KEPT && is_part_lost(guard);

        if (change == RUNTIME_REMADE || is_part)
                rewrite(guard, is_part);
        else if (change == RUNTIME_GONE && guard->loss.error == 0)
                log_errno(LOG_ERR, NULL, error,
                        "The runtime directory %s was removed while ublkd runs, and cannot be made again: "
                        "%s; trying again every few seconds",
                        path, strerror(-error));
        if (change == RUNTIME_REMADE && error < 0)
                log_errno(LOG_WARNING, NULL, error,
                        "The runtime directory %s cannot be watched again: %s; trying again, and "
                        "looking at it, every few seconds",
                        path, strerror(-error));
        if (change != RUNTIME_KEPT || is_part)
                runtime_loss_note(
                        &guard->loss, guard->config.store, path, is_part, change == RUNTIME_GONE ? error : 0);
        guard->config.changed(guard->config.userdata, change == RUNTIME_REMADE || is_part);
}

int runtime_guard_new(const struct runtime_guard_config *config, struct runtime_guard **ret)
{
        struct runtime_guard *guard = calloc(1, sizeof(*guard));
        int r;

        if (!guard)
                return -ENOMEM;
        guard->config = *config;
        guard->loss = (struct runtime_loss){.has_files = has_files, .userdata = guard};
        r = runtime_watch_new(config->event, config->dir, on_change, guard, &guard->watch);
        if (r < 0)
                log_errno(LOG_WARNING, NULL, r,
                        "The runtime directory cannot be watched: %s; if it is removed, ublkd does not "
                        "report that",
                        strerror(-r));
        *ret = guard;
        return 0;
}

struct runtime_guard *runtime_guard_free(struct runtime_guard *guard)
{
        if (!guard)
                return NULL;
        runtime_watch_free(guard->watch);
        runtime_loss_clear(&guard->loss);
        free(guard);
        return NULL;
}

int runtime_guard_report(struct runtime_guard *guard, struct problem_list *problems)
{
        return runtime_loss_report(&guard->loss, guard->config.store, problems);
}
