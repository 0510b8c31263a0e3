/* SPDX-License-Identifier: MIT */
/* Reports the loss of the runtime directory. */
#include "ublkd/host/runtime_loss.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_SIZE = 256, WHAT_SIZE = PATH_MAX + 80 };

/* A worker that has exited has no socket, and its pid can be in the status for a moment. */
static bool is_alive(pid_t pid)
{
        return kill(pid, 0) == 0 || errno == EPERM;
}

/* Return whether no path leads to the socket or to the region of the worker any more. */
static bool is_cut_off(const struct runtime_loss *loss, const struct device_record *record)
{
        return record->age == RECORD_CURRENT && record->status.worker.pid > 0
               && !loss->has_files(loss->userdata, record->uid) && is_alive(record->status.worker.pid);
}

/* Return the place of the device in loss->noted; noted_count if there is none. */
static size_t find_noted(const struct runtime_loss *loss, const struct device_record *record)
{
        size_t i = 0;

        while (i < loss->noted_count && strcmp(loss->noted[i].uid, record->uid) != 0)
                i++;
        return i;
}

static bool is_noted(const struct runtime_loss *loss, const struct device_record *record)
{
        size_t i = find_noted(loss, record);

        return i < loss->noted_count && loss->noted[i].started_at == record->status.worker.started_at;
}

/* On ENOMEM the next loss makes another event of this worker. */
static void add_noted(struct runtime_loss *loss, const struct device_record *record)
{
        size_t i = find_noted(loss, record);
        struct noted_worker *noted;

        if (i == loss->noted_count) {
                noted = reallocarray(loss->noted, i + 1, sizeof(*noted));
                if (!noted)
                        return;
                strcpy(noted[i].uid, record->uid);
                loss->noted = noted;
                loss->noted_count++;
        }
        loss->noted[i].started_at = record->status.worker.started_at;
}

static void note_one(struct runtime_loss *loss, struct device_store *store,
        const struct device_record *record, const char *what)
{
        add_noted(loss, record);
        (void)device_store_note(store, record->name, EVENT_WARNING, REASON_RUNTIME_DIRECTORY_GONE,
                "%s. The disk is served on, but its statistics are lost, and a ublkd that is restarted "
                "cannot adopt its worker %d. 'ublkctl restart %s' replaces the worker; do that before "
                "ublkd is restarted.",
                what, (int)record->status.worker.pid, record->name);
}

bool runtime_loss_is_new(const struct runtime_loss *loss, const struct device_store *store)
{
        DEVICE_STORE_FOREACH (record, store)
                if (is_cut_off(loss, record) && !is_noted(loss, record))
                        return true;
        return false;
}

/* Write the clause that begins both sentences. */
static void write_what(const struct runtime_loss *loss, const char *path, char text[static WHAT_SIZE])
{
        snprintf(text, WHAT_SIZE,
                loss->is_part ? "Files of workers in the runtime directory %s were removed while ublkd ran"
                              : "The runtime directory %s was removed while ublkd ran",
                path);
}

void runtime_loss_note(
        struct runtime_loss *loss, struct device_store *store, const char *path, bool is_part, int error)
{
        char what[WHAT_SIZE];

        loss->error = error;
        loss->is_part = is_part;
        write_what(loss, path, what);
        DEVICE_STORE_FOREACH (record, store)
                if (is_cut_off(loss, record) && !is_noted(loss, record))
                        note_one(loss, store, record, what);
        free(loss->path);
        loss->path = strdup(path); /* on ENOMEM the host does not name it */
}

/* Write "a b c", as many names as fit. Return how many devices there are. */
static size_t list_names(
        const struct runtime_loss *loss, const struct device_store *store, char names[static NAMES_SIZE])
{
        size_t count = 0, used = 0;
        bool full = false;

        names[0] = '\0';
        DEVICE_STORE_FOREACH (record, store) {
                if (!is_cut_off(loss, record))
                        continue;
                full = full || used + strlen(record->name) + 2 > NAMES_SIZE;
                if (!full)
                        used += (size_t)snprintf(
                                names + used, NAMES_SIZE - used, "%s%s", count ? " " : "", record->name);
                count++;
        }
        if (full && used + sizeof(" ...") <= NAMES_SIZE)
                strcpy(names + used, " ...");
        return count;
}

int runtime_loss_report(
        struct runtime_loss *loss, const struct device_store *store, struct problem_list *problems)
{
        char names[NAMES_SIZE], what[WHAT_SIZE];
        size_t count;

        if (!loss->path)
                return 0;
        if (loss->error < 0)
                return problem_add(problems, -loss->error, "", "RuntimeDirectoryGone",
                        "The runtime directory %s was removed while ublkd runs, and cannot be made again: "
                        "%s. The disks are served on, but no worker can be started: a disk whose worker dies "
                        "is not recovered. ublkd tries again every few seconds",
                        loss->path, strerror(-loss->error));
        count = list_names(loss, store, names);
        if (count == 0) {
                runtime_loss_clear(loss);
                return 0;
        }
        write_what(loss, loss->path, what);
        return problem_add(problems, ENOLINK, "", "RuntimeDirectoryGone",
                "%s%s. All disks are served on. Of %zu worker%s that ran then, statistics are lost, and new "
                "limits and faults of the store are not passed on. A restarted ublkd cannot adopt %s: "
                "replace %s before, with 'ublkctl restart %s'",
                what, loss->is_part ? "" : ", and was made again", count, count == 1 ? "" : "s",
                count == 1 ? "it" : "them", count == 1 ? "it" : "them", names);
}

void runtime_loss_clear(struct runtime_loss *loss)
{
        free(loss->path);
        free(loss->noted);
        loss->path = NULL;
        loss->noted = NULL;
        loss->noted_count = 0;
        loss->error = 0;
}
