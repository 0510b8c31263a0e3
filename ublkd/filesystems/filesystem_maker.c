/* SPDX-License-Identifier: MIT */
/* Makes the file system of a device. */
#include "ublkd/filesystems/filesystem_maker.h"
#include "ublkd/filesystems/filesystem_job.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/model/device_spec_store.h"

#include <inttypes.h>
#include <sys/queue.h>
#include <systemd/sd-id128.h>

enum { TENANT_MAX = 2 };

struct filesystem_making {
        struct filesystem_maker *maker;
        void (*then)(void *userdata, const struct filesystem_answer *answer); /* NULL: abandoned */
        void *userdata;
        struct filesystem_wish wish;
        enum filesystem_task task;
        enum mount_change before; /* of a mount or its end: what the record had */
        bool left;                /* a mount may have ended, and a copy of it may be there: it is not over */
        enum filesystem_verdict verdict; /* of FILESYSTEM_LEAVES, and ... */
        int error;                       /* ... its -errno */
        char uuid[FILESYSTEM_UUID_SIZE]; /* of the file system that is made or checked */
        char device[UID_TEXT_SIZE];      /* its uid */
        int number;                      /* of the disk, and ... */
        uint16_t epoch;                  /* ... which one of the device it is */
        LIST_ENTRY(filesystem_making) entry;
};

struct filesystem_maker {
        struct device_store *store;
        const char *dev, *sys, *mounts; /* sys: NULL: disks are files */
        struct filesystem_jobs *jobs;
        LIST_HEAD(, filesystem_making) all;
};

static void making_free(struct filesystem_making *making)
{
        LIST_REMOVE(making, entry);
        free(making);
}

/* Return whether the disk is still the one that the process has opened. */
static bool has_that_disk(const struct filesystem_making *making, const struct device_record *record)
{
        return device_record_disk_has_number(record) && record->number == making->number
               && record->epoch == making->epoch;
}

/* Return the record of the device, if the disk is still the one that the process has opened, or it needs none; else
 * NULL. */
static const struct device_record *find_record(const struct filesystem_making *making)
{
        const struct device_record *record = device_store_find_uid(making->maker->store, making->device);

        if (making->wish.aim == FILESYSTEM_AIM_UNMOUNTED)
                return record;
        return record && has_that_disk(making, record) ? record : NULL;
}

static enum mount_change change_by(enum filesystem_task task)
{
        return task == FILESYSTEM_MOUNTS     ? MOUNT_COMES
               : task == FILESYSTEM_UNMOUNTS ? MOUNT_GOES
                                             : MOUNT_STAYS;
}

/* Return what is under way with the mount after the answer. What an earlier unmount has left is there until a request succeeds. A
 * mount that an unmount has not ended protects the disk itself. */
static enum mount_change change_after(const struct filesystem_making *making,
        const struct device_record *record, enum filesystem_verdict verdict)
{
        bool unmounts = making->task == FILESYSTEM_UNMOUNTS;

        if (making->left)
                return MOUNT_GOES;
        return verdict == FILESYSTEM_IS_MOUNTED || verdict == FILESYSTEM_IS_UNMOUNTED
                               || (unmounts && *record->mount)
                       ? MOUNT_STAYS
                       : making->before;
}

static void answer(
        struct filesystem_making *making, enum filesystem_verdict verdict, int error, const char *text)
{
        const struct device_record *record = device_store_find_uid(making->maker->store, making->device);
        struct filesystem_answer result = {.verdict = verdict, .error = error, .text = text};
        struct filesystem_making copy = *making;

        if (record && change_by(making->task) != MOUNT_STAYS)
                device_store_set_mount_change(
                        making->maker->store, record->name, change_after(making, record, verdict));
        result.filesystem = filesystem_of_note(record ? record->filesystem : "");
        making_free(making);
        if (copy.then)
                copy.then(copy.userdata, &result);
}

static int note(const struct filesystem_making *making, const struct device_record *record,
        struct filesystem filesystem)
{
        char text[FILESYSTEM_NOTE_SIZE];

        filesystem_to_note(&filesystem, text);
        return device_store_set_filesystem(making->maker->store, record->name, text);
}

/* ---- the look ---- */

static int choose(enum filesystem_kind kind, struct filesystem *ret)
{
        sd_id128_t id;
        int r = sd_id128_randomize(&id);

        *ret = (struct filesystem){.stage = FILESYSTEM_BEGUN, .kind = kind};
        if (r >= 0)
                sd_id128_to_uuid_string(id, ret->uuid);
        return r;
}

/* Return the path of the store that the disk stands on; "": there is none. */
static const char *store_of(const struct device_record *record)
{
        const char *path = device_spec_path(record->spec);

        return path ? path : "";
}

/* Copies that an unmount has left are those of this disk: one that keeps its number, as they keep it in use. The process has opened
 * it before this record is looked at. */
static void name_number(const struct filesystem_maker *maker, const struct device_record *record,
        char ret[static FILESYSTEM_PATH_SIZE])
{
        if (maker->sys && device_record_disk_has_number(record))
                snprintf(ret, FILESYSTEM_PATH_SIZE, "%s/block/ublkb%d/dev", maker->sys, record->number);
}

static void name_node(const struct filesystem_maker *maker, const struct device_record *record,
        char ret[static FILESYSTEM_PATH_SIZE])
{
        if (device_record_disk_has_number(record))
                snprintf(ret, FILESYSTEM_PATH_SIZE, "%s/ublkb%d", maker->dev, record->number);
}

/* Return 0 with a task for the process, or -errno. A new file system is noted before it begins. */
static int begin(struct filesystem_making *making, const struct device_record *record,
        enum filesystem_task task, struct filesystem_go *ret)
{
        struct filesystem filesystem = filesystem_of_note(record->filesystem);
        int r = 0;

        if (task == FILESYSTEM_MAKES)
                r = choose(making->wish.kind, &filesystem);
        if (r >= 0 && task == FILESYSTEM_MAKES)
                r = note(making, record, filesystem);
        if (r < 0)
                return r;
        making->before = record->mount_change;
        if (change_by(task) != MOUNT_STAYS)
                device_store_set_mount_change(making->maker->store, record->name, change_by(task));
        *ret = (struct filesystem_go){.task = task, .kind = filesystem.kind};
        memcpy(ret->uuid, filesystem.uuid, sizeof(ret->uuid));
        memcpy(making->uuid, filesystem.uuid, sizeof(making->uuid));
        ret->flags = making->wish.flags;
        snprintf(ret->top, sizeof(ret->top), "%s", making->maker->mounts);
        snprintf(ret->store, sizeof(ret->store), "%s", store_of(record));
        memcpy(ret->point, making->device, sizeof(ret->point));
        if (task == FILESYSTEM_UNMOUNTS && has_that_disk(making, record)) {
                name_number(making->maker, record, ret->number);
                name_node(making->maker, record, ret->node);
        }
        return 0;
}

static struct filesystem_step next(
        const struct filesystem_making *making, const struct filesystem *noted, enum filesystem_sight sight)
{
        static const struct filesystem_step unmount = {.task = FILESYSTEM_UNMOUNTS};

        if (making->wish.aim == FILESYSTEM_AIM_UNMOUNTED)
                return unmount;
        return making->wish.aim == FILESYSTEM_AIM_MOUNTED ? filesystem_next_mount(noted, sight)
                                                          : filesystem_next(noted, &making->wish, sight);
}

/* There is nothing to do: the answer follows when the process has ended. */
static void leave(struct filesystem_making *making, enum filesystem_verdict verdict, int error)
{
        making->task = FILESYSTEM_LEAVES;
        making->verdict = verdict;
        making->error = error;
}

static void on_look(void *userdata, const struct filesystem_look *look, struct filesystem_go *ret)
{
        struct filesystem_making *making = userdata;
        const struct device_record *record = find_record(making);
        struct filesystem noted;
        struct filesystem_step step;
        int r;

        if (!record || (record->deleting && making->wish.aim != FILESYSTEM_AIM_UNMOUNTED)) {
                leave(making, FILESYSTEM_NO_DISK, 0);
                return;
        }
        noted = filesystem_of_note(record->filesystem);
        step = next(making, &noted, (enum filesystem_sight)look->sight);
        if (step.task == FILESYSTEM_MOUNTS && record->spec
                && (device_spec_lets_users_write(record->spec) || device_spec_has_list(record->spec)
                        || (tenant_is_set(record->tenant) && !device_spec_is_volume(record->spec))))
                step = (struct filesystem_step){.verdict = FILESYSTEM_OPEN_TO_USERS};
        making->task = step.task;
        if (step.task == FILESYSTEM_LEAVES) {
                leave(making, step.verdict, look->error);
                return;
        }
        r = begin(making, record, step.task, ret);
        if (r < 0) {
                ret->task = FILESYSTEM_LEAVES;
                leave(making, FILESYSTEM_NOT_STORED, r);
        }
}

/* ---- the report ---- */

static enum filesystem_verdict judge_mount(
        const struct filesystem_making *making, const struct filesystem_report *report)
{
        bool mounts = making->task == FILESYSTEM_MOUNTS;

        if (report->outcome == FILESYSTEM_DONE)
                return mounts ? FILESYSTEM_IS_MOUNTED : FILESYSTEM_IS_UNMOUNTED;
        if (report->outcome == FILESYSTEM_LATE)
                return FILESYSTEM_TOOK_TOO_LONG;
        if (report->outcome == FILESYSTEM_KEPT)
                return FILESYSTEM_OPEN_TO_USERS;
        return mounts ? FILESYSTEM_NOT_MOUNTED : FILESYSTEM_NOT_UNMOUNTED;
}

static enum filesystem_verdict judge_kept(const struct filesystem_report *report)
{
        if (report->sight == FILESYSTEM_SEES_ERROR)
                return FILESYSTEM_NOT_READ;
        return report->sight == FILESYSTEM_SEES_USE ? FILESYSTEM_IN_USE : FILESYSTEM_NOT_BLANK;
}

static enum filesystem_verdict judge(
        const struct filesystem_making *making, const struct filesystem_report *report)
{
        static const enum filesystem_verdict verdicts[_FILESYSTEM_OUTCOME_MAX] = {
                [FILESYSTEM_DONE] = FILESYSTEM_IS_MADE,
                [FILESYSTEM_NO_PROGRAM] = FILESYSTEM_NOT_INSTALLED,
                [FILESYSTEM_NO_WALLS] = FILESYSTEM_NOT_CONFINED,
                [FILESYSTEM_LEFT] = FILESYSTEM_NOT_UNMOUNTED,
                [FILESYSTEM_FAILED] = FILESYSTEM_PROGRAM_FAILED,
                [FILESYSTEM_LATE] = FILESYSTEM_TOOK_TOO_LONG,
        };

        if (making->task == FILESYSTEM_MOUNTS || making->task == FILESYSTEM_UNMOUNTS)
                return judge_mount(making, report);
        if (report->outcome == FILESYSTEM_KEPT)
                return judge_kept(report);
        return making->task == FILESYSTEM_CHECKS && report->outcome == FILESYSTEM_FAILED
                               && report->status != 0
                       ? FILESYSTEM_UNFINISHED
                       : verdicts[report->outcome];
}

/* Note what the disk has now. A disk that is still blank needs no note. Return 0; -ENODEV: the device has another disk now,
 * or another request has begun; other -errno. */
static int settle(const struct filesystem_making *making, const struct device_record *record,
        const struct filesystem_report *report)
{
        struct filesystem filesystem = filesystem_of_note(record->filesystem);

        if (making->wish.aim != FILESYSTEM_AIM_MADE)
                return 0;
        if (!find_record(making))
                return -ENODEV;
        if (making->task == FILESYSTEM_LEAVES) /* the look has not ended, so nothing has begun */
                return 0;
        if (strcmp(filesystem.uuid, making->uuid) != 0)
                return -ENODEV;
        if (filesystem.stage != FILESYSTEM_BEGUN)
                return 0;
        if (report->outcome == FILESYSTEM_DONE)
                filesystem.stage = FILESYSTEM_MADE;
        else if ((report->outcome == FILESYSTEM_KEPT && making->task == FILESYSTEM_MAKES)
                 || report->sight == FILESYSTEM_SEES_BLANK)
                filesystem.stage = FILESYSTEM_NONE;
        else
                return 0;
        return note(making, record, filesystem);
}

/* The kernel has it, and the answer shows it: before the watch of the mounts does. */
static void show_mount(const struct filesystem_making *making, const struct device_record *record)
{
        char path[MOUNT_PATH_SIZE];

        snprintf(path, sizeof(path), "%s/%s", making->maker->mounts, making->device);
        (void)device_store_set_mount(
                making->maker->store, record->name, making->task == FILESYSTEM_MOUNTS ? path : "");
}

static void on_report(struct filesystem_making *making, const struct filesystem_report *report)
{
        const struct device_record *record = device_store_find_uid(making->maker->store, making->device);
        int r = record ? settle(making, record, report) : 0;

        making->left = report->outcome == FILESYSTEM_LEFT
                       || (making->task == FILESYSTEM_UNMOUNTS && report->outcome == FILESYSTEM_LATE);
        if (record && (report->outcome == FILESYSTEM_DONE || report->outcome == FILESYSTEM_LEFT)
                && making->wish.aim != FILESYSTEM_AIM_MADE)
                show_mount(making, record);
        if (!record || r == -ENODEV)
                answer(making, FILESYSTEM_NO_DISK, 0, "");
        else if (r < 0)
                answer(making, FILESYSTEM_NOT_STORED, r, "");
        else
                answer(making, judge(making, report), report->error, report->text);
}

static void on_done(void *userdata, const struct filesystem_report *report)
{
        struct filesystem_making *making = userdata;

        if (report)
                on_report(making, report);
        else
                answer(making, making->verdict, making->error, "");
}

/* ---- requests ---- */

static bool counts(const struct filesystem_wish *wish)
{
        return wish->account.is_set && wish->aim != FILESYSTEM_AIM_UNMOUNTED;
}

/* Return whether a tenant, or all of them, have as many under way as they may: there is room for few, and half of it is for administrators.
 * An unmount never waits for that. */
static bool is_over_share(const struct filesystem_maker *maker, const struct filesystem_wish *wish)
{
        const struct filesystem_making *making;
        unsigned all = 0, own = 0;

        if (!counts(wish))
                return false;
        LIST_FOREACH (making, &maker->all, entry) {
                const struct filesystem_account *account = &making->wish.account;

                if (!counts(&making->wish))
                        continue;
                all++;
                own += account->first == wish->account.first && account->last == wish->account.last;
        }
        return own >= TENANT_MAX || all >= filesystem_jobs_running_max(maker->jobs) / 2;
}

static bool may_begin(const struct device_record *record, enum filesystem_aim aim)
{
        if (record->age != RECORD_CURRENT)
                return false;
        return aim == FILESYSTEM_AIM_UNMOUNTED
               || (device_record_disk_has_number(record) && record->status.phase == PHASE_LIVE
                       && !record->deleting);
}

int filesystem_request(struct filesystem_maker *maker, const struct device_record *record,
        const struct filesystem_wish *wish,
        void (*then)(void *userdata, const struct filesystem_answer *answer), void *userdata,
        struct filesystem_making **ret)
{
        struct filesystem noted = filesystem_of_note(record->filesystem);
        struct filesystem_order order = {.kind = noted.kind};
        struct filesystem_making *making;
        int r;

        if (!may_begin(record, wish->aim))
                return -ENODEV;
        if (is_over_share(maker, wish))
                return -EAGAIN;
        making = calloc(1, sizeof(*making));
        if (!making)
                return -ENOMEM;
        *making = (struct filesystem_making){.maker = maker,
                .then = then,
                .userdata = userdata,
                .wish = *wish,
                .number = record->number,
                .epoch = record->epoch};
        memcpy(making->device, record->uid, sizeof(making->device));
        memcpy(order.uuid, noted.uuid, sizeof(order.uuid));
        memcpy(order.device, record->uid, sizeof(order.device));
        name_node(maker, record, wish->aim == FILESYSTEM_AIM_UNMOUNTED ? order.hold : order.path);
        name_number(maker, record, order.number);
        LIST_INSERT_HEAD(&maker->all, making, entry);
        r = filesystem_job_begin(maker->jobs, &order,
                &(const struct filesystem_job_events){
                        .looked = on_look, .done = on_done, .userdata = making});
        if (r < 0) {
                making_free(making);
                return r;
        }
        *ret = making;
        return 0;
}

void filesystem_abandon(struct filesystem_making *making)
{
        making->then = NULL;
}

/* ---- the whole ---- */

int filesystem_maker_new(const struct filesystem_maker_config *config, struct filesystem_maker **ret)
{
        const struct filesystem_limits *limits = config->limits;
        struct filesystem_maker *maker = calloc(1, sizeof(*maker));
        int r = maker ? filesystem_jobs_new(config->event, limits, &maker->jobs) : -ENOMEM;

        if (r < 0) {
                free(maker);
                return r;
        }
        maker->store = config->store;
        maker->mounts = config->mounts;
        maker->dev = limits && limits->dev ? limits->dev : "/dev";
        maker->sys = limits && (limits->dev || limits->sys) ? limits->sys : "/sys";
        LIST_INIT(&maker->all);
        *ret = maker;
        return 0;
}

struct filesystem_maker *filesystem_maker_free(struct filesystem_maker *maker)
{
        struct filesystem_making *making;

        if (!maker)
                return NULL;
        filesystem_jobs_free(maker->jobs);
        while ((making = LIST_FIRST(&maker->all)))
                making_free(making);
        free(maker);
        return NULL;
}
