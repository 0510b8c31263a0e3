/* SPDX-License-Identifier: MIT */
/* Marks in the runtime directory: which disks are in service. */
#include "ublkd/tasks/disk_marks.h"

#include "ublkd/base/file_io.h"
#include "ublkd/base/log.h"
#include "ublkd/base/sentence.h"
#include "ublkd/store/device_change.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What a phase means for the unit of a disk that no worker serves, or that is none. */
enum mark {
        MARK_AS_BEFORE,
        MARK_NONE,
        MARK_LIVE,
        MARK_FAILED,
        MARK_FAILED_IF_NOT_LIVE, /* it is not known what became of a disk that was in service */
};

static const enum mark mark_of_phase[_PHASE_MAX] = {
        [PHASE_PENDING] = MARK_AS_BEFORE,
        [PHASE_STARTING] = MARK_NONE, /* what was there, if anything, is gone */
        [PHASE_LIVE] = MARK_LIVE,
        [PHASE_RECOVERING] = MARK_AS_BEFORE,
        [PHASE_BACKOFF] = MARK_FAILED,
        [PHASE_QUIESCED] = MARK_FAILED,
        [PHASE_STOPPING] = MARK_NONE,
        [PHASE_DISABLED] = MARK_NONE,
        [PHASE_FAILED] = MARK_FAILED,
        [PHASE_UNKNOWN] = MARK_AS_BEFORE,
};

enum {
        TEXT_MAX = 32 + TARGET_STORES_MAX * (PATH_MAX + 1)
}; /* bytes of a mark: the worker, and a path of each store, a line each */

struct disk_marks {
        struct device_store *store;
        struct runtime_dir *dir;
        bool subscribed, complained;
};

DEFINE_CLEANUP(struct disk_marks, disk_marks_free);

static int remove_mark(int dir, const char *name)
{
        return unlinkat(dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* Leave a mark alone that says the same: a watch of it is not woken. */
static int write_mark(int dir, const char *name, const char *text)
{
        _cleanup_free_ char *found = NULL;

        if (read_whole_at(dir, name, TEXT_MAX, &found) >= 0 && strcmp(found, text) == 0)
                return 0;
        return replace_text_at(dir, name, 0600, text); /* paths are in it */
}

/* Set the mark that is wanted before the other one is removed: no moment has none without a reason. text: of the mark,
 * whole lines. */
static int set_mark(const struct disk_marks *marks, const char *name, enum mark mark, const char *text)
{
        _cleanup_close_ int live = runtime_dir_open_marks(marks->dir, RUNTIME_LIVE);
        _cleanup_close_ int failed = runtime_dir_open_marks(marks->dir, RUNTIME_FAILED);
        int r = live < 0 ? live : failed < 0 ? failed : 0;

        if (r >= 0 && mark == MARK_FAILED_IF_NOT_LIVE) {
                if (faccessat(live, name, F_OK, 0) == 0)
                        return 0;
                mark = MARK_FAILED;
        }
        if (r >= 0)
                r = mark == MARK_FAILED ? write_mark(failed, name, text) : remove_mark(failed, name);
        if (r < 0)
                return r;
        return mark == MARK_LIVE ? write_mark(live, name, text) : remove_mark(live, name);
}

/* text: NULL on ENOMEM. */
static void mark_device(struct disk_marks *marks, const char *name, enum mark mark, const char *text)
{
        int r;

        if (mark == MARK_AS_BEFORE)
                return;
        r = text ? set_mark(marks, name, mark, text) : -ENOMEM;
        if (r < 0 && !marks->complained)
                log_errno(LOG_WARNING, name, r,
                        "The mark of the disk in the runtime directory cannot be set: %s; the unit "
                        "ublk-disk@ of the disk may have another state than the disk, which is served "
                        "nevertheless",
                        strerror(-r));
        marks->complained = r < 0;
}

/* A disk that is about to be removed is in service until then, and an opener may keep it. I/O that ublkd fails, or that
 * waits for an administrator, is a failure also while the disk is removed. */
static enum mark mark_of(const struct device_status *status)
{
        bool served = status->disk && status->worker.pid > 0;

        if (served && (status->phase == PHASE_STOPPING || status->phase == PHASE_FAILED))
                return MARK_LIVE;
        if (status->reason == REASON_GAVE_UP || status->reason == REASON_WAITS_FOR_RECOVER)
                return MARK_FAILED;
        if (status->reason == REASON_HOST_NOT_READY
                && (status->phase == PHASE_PENDING || status->phase == PHASE_UNKNOWN))
                return MARK_FAILED_IF_NOT_LIVE;
        return mark_of_phase[status->phase];
}

/* Write the worker and the paths of the stores, a line each, as far as they have one line; "\n": nothing is known. A client on
 * the host has named them. Return the text, which the caller frees; NULL on ENOMEM. */
static char *facts_of(const struct device_record *record)
{
        bool is_shown = record->spec && device_store_user(record, record->spec) == 0;
        unsigned count = is_shown ? device_spec_stores(record->spec) : 0;
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return NULL;
        if (record->status.worker.pid > 0)
                fprintf(out, "worker %d\n", (int)record->status.worker.pid);
        for (unsigned i = 0; i < count; i++) {
                const char *path = device_spec_store_path(record->spec, i);

                if (path && !strchr(path, '\n'))
                        fprintf(out, "%s\n", path);
        }
        if (ftell(out) == 0)
                fputc('\n', out);
        if (fclose(out) == 0)
                return text;
        free(text);
        return NULL;
}

/* Without the count and the time of the attempts, which change with each. Return a line, which the caller frees; NULL on ENOMEM. */
static char *reason_of(const struct device_status *status)
{
        const char *reason =
                status->phase == PHASE_BACKOFF && status->cause ? status->cause : status->message;

        return sentence_print("%s\n", reason ? reason : "");
}

static void mark_record(struct disk_marks *marks, const struct device_record *record)
{
        enum mark mark = mark_of(&record->status);
        _cleanup_free_ char *text = mark == MARK_LIVE ? facts_of(record) : reason_of(&record->status);

        mark_device(marks, record->name, mark, text);
}

static void on_store_event(void *userdata, const struct store_event *event)
{
        if (event->kind == STORE_REMOVED)
                mark_device(userdata, event->name, MARK_NONE, "");
        else if (event->kind == STORE_STATUS)
                mark_record(userdata, event->record);
}

int disk_marks_new(struct device_store *store, struct runtime_dir *dir, struct disk_marks **ret)
{
        _cleanup_(disk_marks_free_pointer) struct disk_marks *marks = calloc(1, sizeof(*marks));
        int r;

        if (!marks)
                return -ENOMEM;
        marks->store = store;
        marks->dir = dir;
        r = device_store_subscribe(store, on_store_event, marks);
        if (r < 0)
                return r;
        marks->subscribed = true;
        *ret = TAKE_PTR(marks);
        return 0;
}

struct disk_marks *disk_marks_free(struct disk_marks *marks)
{
        if (marks && marks->subscribed)
                device_store_unsubscribe(marks->store, on_store_event, marks);
        free(marks);
        return NULL;
}

void disk_marks_rewrite(struct disk_marks *marks)
{
        if (!marks)
                return;
        DEVICE_STORE_FOREACH (record, marks->store)
                mark_record(marks, record);
}
