/* SPDX-License-Identifier: MIT */
/* Keeps a copy of every record in the runtime directory, and finds with it what a database has lost.
 *
 * The store writes the database first. Then the keeper, its first subscriber, writes the copy, before anything
 * acts on the change. If ublkd dies in between, the directory has
 *  - no copy, or an older copy of the same database: the record counts, and the next ublkd writes the copy
 *    before it sends a command about the disk;
 *  - the copy of an erased record: that device was being removed and its disk was removed already. The next
 *    ublkd removes the copy.
 * The other order could leave a copy of a change that no client was acknowledged. Such a copy would be newer
 * than its record, as with an older database, and the disk would wait for an administrator without need.
 *
 * The file `database` in the same directory names the database that ran last in this boot, and its revision.
 * With it the keeper recognises an older database even if the newer one has removed a record and its copy: the
 * record in the older database is not current, and the keeper writes a copy of it that says "removed". */
#include "ublkd/records/record_keeper.h"

#include "ublkd/base/sentence.h"
#include "ublkd/model/device_cookie.h"
#include "ublkd/records/record_file.h"
#include "ublkd/store/device_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-id128.h>

enum { MARK_SIZE = 128 };

struct record_keeper {
        struct device_store *store;
        struct runtime_dir *runtime_dir;
        char boot[UID_TEXT_SIZE];
        int mark_fd;
        char **missing; /* uids of devices whose copy could not be written; owned */
        size_t missing_count;
};

DEFINE_CLEANUP(struct record_keeper, record_keeper_free);

/* ---- copies ---- */

static size_t find_missing(const struct record_keeper *keeper, const char *uid)
{
        size_t i = 0;

        while (i < keeper->missing_count && strcmp(keeper->missing[i], uid) != 0)
                i++;
        return i;
}

static void drop_missing(struct record_keeper *keeper, const char *uid)
{
        size_t i = find_missing(keeper, uid);

        if (i == keeper->missing_count)
                return;
        free(keeper->missing[i]);
        keeper->missing[i] = keeper->missing[--keeper->missing_count];
}

static int add_missing(struct record_keeper *keeper, const char *uid)
{
        char *copy = strdup(uid), **missing;

        if (!copy)
                return -ENOMEM;
        missing = reallocarray(keeper->missing, keeper->missing_count + 1, sizeof(char *));
        if (!missing) {
                free(copy);
                return -ENOMEM;
        }
        missing[keeper->missing_count++] = copy;
        keeper->missing = missing;
        return 0;
}

static int write_file(struct record_keeper *keeper, const struct record_file *file)
{
        _cleanup_free_ char *text = NULL;
        int r = record_file_make(file, &text);

        return r < 0 ? r : runtime_dir_write_record(keeper->runtime_dir, file->record.uid, text);
}

/* Return the copy of `record`; it borrows what the record owns. */
static struct record_file file_of(const struct record_keeper *keeper, const struct device_record *record)
{
        struct record_file file = {.record = *record};

        strcpy(file.boot, keeper->boot);
        strcpy(file.database, device_store_stamp(keeper->store)->database);
        return file;
}

/* Write the copy of a record. A record that is not current, or quarantined, must not replace a copy that may
 * be newer or valid. */
static int keep(struct record_keeper *keeper, const struct device_record *record)
{
        const struct record_file file = file_of(keeper, record);
        int r;

        if (record->age != RECORD_CURRENT || !record->spec)
                return 0;
        drop_missing(keeper, record->uid);
        r = write_file(keeper, &file);
        if (r < 0)
                (void)add_missing(keeper, record->uid); /* on ENOMEM the next change tries again */
        return r;
}

/* Read the copy of the device `uid`. Return 0; -ENOENT: there is none of this boot; other -errno: it is not
 * readable. */
static int read_file(const struct record_keeper *keeper, const char *uid, struct record_file *ret)
{
        _cleanup_free_ char *text = NULL;
        int r = runtime_dir_read_record(keeper->runtime_dir, uid, RECORD_FILE_SIZE_MAX, &text);

        if (r >= 0)
                r = record_file_parse(text, uid, ret);
        if (r >= 0 && strcmp(ret->boot, keeper->boot) != 0) {
                record_file_clear(ret);
                return -ENOENT;
        }
        return r;
}

bool record_keeper_is_missing(const struct record_keeper *keeper, const char *uid)
{
        return find_missing(keeper, uid) < keeper->missing_count;
}

int record_keeper_ensure(struct record_keeper *keeper, const char *name)
{
        const struct device_record *record = device_store_get(keeper->store, name);

        if (!record || !record_keeper_is_missing(keeper, record->uid))
                return 0;
        return keep(keeper, record);
}

/* ---- the mark of the database ---- */

/* Replace the mark atomically, but not durably: after a crash of the machine it does not count. A failure is
 * ignored: then an older database is not recognised by its removed devices. */
static void write_mark(const struct record_keeper *keeper)
{
        const struct store_stamp *stamp = device_store_stamp(keeper->store);
        char text[MARK_SIZE];
        int n = snprintf(
                text, sizeof(text), "%s %s %020" PRIu64 "\n", keeper->boot, stamp->database, stamp->revision);
        ssize_t written = *stamp->database ? pwrite(keeper->mark_fd, text, (size_t)n, 0) : 0;

        (void)written;
}

/* Return whether the database is an older copy of the one that ran last in this boot, or another one. */
static bool is_behind(const struct record_keeper *keeper)
{
        const struct store_stamp *stamp = device_store_stamp(keeper->store);
        char text[MARK_SIZE] = "", boot[UID_TEXT_SIZE], database[DATABASE_ID_SIZE];
        uint64_t revision;

        if (pread(keeper->mark_fd, text, sizeof(text) - 1, 0) <= 0
                || sscanf(text, "%36s %32s %" SCNu64, boot, database, &revision) != 3
                || strcmp(boot, keeper->boot) != 0)
                return false;
        return strcmp(database, stamp->database) != 0 || stamp->revision < revision;
}

/* ---- the start ---- */

/* Write the copy that says "removed": the mark alone does not show it after this database has changed. */
static int write_removed(struct record_keeper *keeper, const struct device_record *record)
{
        struct record_file file = file_of(keeper, record);

        if (!record->spec)
                return 0;
        file.removed = true;
        file.record.stored_revision++;
        return write_file(keeper, &file);
}

static int judge(struct record_keeper *keeper, const struct device_record *record, bool behind)
{
        _cleanup_record_file_ struct record_file file = {};
        int r = read_file(keeper, record->uid, &file);
        enum record_age age;

        if (r == -ENOMEM)
                return r;
        age = record_file_compare(
                r < 0 ? NULL : &file, keeper->boot, record, device_store_stamp(keeper->store), behind);
        if (age == RECORD_REMOVED && !file.removed)
                (void)write_removed(keeper, record); /* on failure: held as long as this ublkd runs */
        if (age == RECORD_CURRENT) {
                (void)keep(keeper, record); /* on failure: record_keeper_ensure() */
                return 0;
        }
        return device_store_set_age(keeper->store, record->name, age);
}

struct sweep {
        struct record_keeper *keeper;
        bool behind;
};

/* Remove the copy of a record that this database has erased. */
static int sweep_one(void *userdata, const char *uid)
{
        const struct sweep *sweep = userdata;
        struct record_keeper *keeper = sweep->keeper;
        _cleanup_record_file_ struct record_file file = {};
        const struct store_stamp *stamp = device_store_stamp(keeper->store);
        bool over;

        if (device_store_find_uid(keeper->store, uid) || read_file(keeper, uid, &file) < 0)
                return 0;
        over = file.record.deleting && !sweep->behind && strcmp(file.database, stamp->database) == 0;
        if (over || file.removed)
                (void)runtime_dir_remove_record(keeper->runtime_dir, uid);
        return 0;
}

static int look_around(struct record_keeper *keeper)
{
        struct sweep sweep = {.keeper = keeper, .behind = is_behind(keeper)};
        int r = 0;

        DEVICE_STORE_FOREACH (record, keeper->store) {
                r = judge(keeper, record, sweep.behind);
                if (r < 0)
                        return r;
        }
        r = runtime_dir_each_record(keeper->runtime_dir, sweep_one, &sweep);
        write_mark(keeper);
        return r;
}

static void on_store_event(void *userdata, const struct store_event *event)
{
        static const bool durable[_STORE_EVENT_MAX] = {
                [STORE_SPEC] = true, [STORE_INTENT] = true, [STORE_ADOPTED] = true, [STORE_REMOVED] = true};
        struct record_keeper *keeper = userdata;

        if (!durable[event->kind])
                return;
        if (event->record)
                (void)keep(keeper, event->record); /* on failure: record_keeper_ensure() */
        else {
                drop_missing(keeper, event->uid);
                (void)runtime_dir_remove_record(keeper->runtime_dir, event->uid); /* see sweep_one() */
        }
        write_mark(keeper);
}

int record_keeper_new(struct device_store *store, struct runtime_dir *runtime_dir, struct record_keeper **ret)
{
        _cleanup_(record_keeper_free_pointer) struct record_keeper *keeper = calloc(1, sizeof(*keeper));
        sd_id128_t boot;
        int r;

        if (!keeper)
                return -ENOMEM;
        keeper->store = store;
        keeper->runtime_dir = runtime_dir;
        keeper->mark_fd = runtime_dir_open_database_mark(runtime_dir);
        if (keeper->mark_fd < 0)
                return keeper->mark_fd;
        r = sd_id128_get_boot(&boot);
        if (r < 0)
                return r;
        (void)sd_id128_to_uuid_string(boot, keeper->boot);
        r = look_around(keeper);
        if (r >= 0)
                r = device_store_subscribe(store, on_store_event, keeper);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(keeper);
        return 0;
}

int record_keeper_rewrite(struct record_keeper *keeper)
{
        int fd = runtime_dir_open_database_mark(keeper->runtime_dir), r = 0;

        if (fd < 0)
                return fd;
        close_fd(keeper->mark_fd);
        keeper->mark_fd = fd;
        DEVICE_STORE_FOREACH (record, keeper->store) {
                int one = keep(keeper, record);

                r = r < 0 ? r : one;
        }
        write_mark(keeper);
        return r;
}

struct record_keeper *record_keeper_free(struct record_keeper *keeper)
{
        if (!keeper)
                return NULL;
        device_store_unsubscribe(keeper->store, on_store_event, keeper);
        for (size_t i = 0; i < keeper->missing_count; i++)
                free(keeper->missing[i]);
        free(keeper->missing);
        close_fd(keeper->mark_fd);
        free(keeper);
        return NULL;
}

/* ---- adoption ---- */

static char *explain_unreadable(const char *uid, int error)
{
        return sentence_print(
                "The record workers/%s.record in the runtime directory cannot be read: %s. A ublkd of "
                "the version that wrote it can adopt its disk.",
                uid,
                error == -EPROTONOSUPPORT ? "another version of ublkd wrote it"
                : error == -EBADMSG       ? "it is damaged, or its spec is not valid for this ublkd"
                                          : strerror(-error));
}

static char *explain_name(const char *name, const char *uid)
{
        return sentence_print(
                "The name %s belongs to another device here. Adopt the disk under another name: "
                "'ublkctl adopt --name NAME %s'.",
                name, uid);
}

/* Return what an adoption would do. existing: the store's record of that uid, or NULL. */
static struct adoptable describe(const struct record_keeper *keeper, const char *uid,
        const struct device_record *existing, const struct record_file *file, int error)
{
        const char *name = existing ? existing->name : file->record.name;
        struct adoptable item = {.number = -1, .age = existing ? existing->age : RECORD_CURRENT};

        strcpy(item.uid, uid);
        if (item.age == RECORD_REMOVED) {
                item.verdict = ADOPT_NOT_ASKED;
                item.detail = sentence_print("%s", existing->status.message);
        } else if (error < 0) {
                item.verdict = ADOPT_BAD_RECORD;
                item.detail = explain_unreadable(uid, error);
        } else if (!existing && device_store_get(keeper->store, name)) {
                item.verdict = ADOPT_NAME_TAKEN;
                item.detail = explain_name(name, uid);
        } else {
                item.verdict = ADOPT_POSSIBLE;
                item.detail = sentence_print(
                        "The database has %s record of the device. 'ublkctl adopt %s' takes it over.",
                        existing ? "an older" : "no", name);
        }
        item.number = error < 0 ? -1 : file->record.number;
        item.name = name ? strdup(name) : NULL;
        return item;
}

struct listing {
        const struct record_keeper *keeper;
        struct adoptables *list;
        size_t most;
};

static bool is_uid(const char *text)
{
        sd_id128_t id;

        return strlen(text) == UID_TEXT_SIZE - 1 && sd_id128_from_string(text, &id) >= 0;
}

static int list_one(void *userdata, const char *uid)
{
        const struct listing *listing = userdata;
        const struct device_record *existing = device_store_find_uid(listing->keeper->store, uid);
        _cleanup_record_file_ struct record_file file = {};
        struct adoptable item;
        int r;

        if ((existing && existing->age == RECORD_CURRENT) || !is_uid(uid)
                || listing->list->count >= listing->most)
                return 0;
        r = read_file(listing->keeper, uid, &file);
        if (r == -ENOENT || r == -ENOMEM || (file.removed && !existing))
                return r == -ENOMEM ? r : 0;
        item = describe(listing->keeper, uid, existing, &file, r);
        return adoptables_add(listing->list, &item);
}

int record_keeper_list(struct record_keeper *keeper, size_t most, struct adoptables *ret)
{
        struct listing listing = {.keeper = keeper, .list = ret, .most = most};

        adoptables_clear(ret);
        return runtime_dir_each_record(keeper->runtime_dir, list_one, &listing);
}

/* ---- the disks of outdated records ---- */

/* Return the disk of the device, or NULL if the scan did not find it. */
static const struct foreign_disk *find_disk(const struct foreign_disks *found, const char *uid)
{
        for (size_t i = 0; i < found->count; i++)
                if (device_cookie_matches(found->items[i].cookie, uid))
                        return &found->items[i];
        return NULL;
}

static int show_disk(
        struct device_store *store, const struct device_record *record, const struct foreign_disk *disk)
{
        struct device_status status = {
                .phase = record->status.phase,
                .observed_generation = record->status.observed_generation,
                .number = disk ? disk->number : record->number,
                .disk = disk,
                .worker.pid = disk ? foreign_disk_server(disk) : 0,
        };
        int r = device_record_explain_age(record, &status);

        if (r >= 0 && !device_status_equal(&status, &record->status))
                r = device_store_set_status(store, record->name, &status);
        device_status_clear(&status);
        return r;
}

int record_keeper_show_disks(struct record_keeper *keeper, const struct foreign_disks *found)
{
        int r = 0;

        DEVICE_STORE_FOREACH (record, keeper->store)
                if (r >= 0 && record->age == RECORD_OUTDATED)
                        r = show_disk(keeper->store, record, find_disk(found, record->uid));
        return r;
}

/* ---- adopting ---- */

static struct adoption verdict(enum adopt_verdict which, const char *name, char *detail)
{
        return (struct adoption){.verdict = which, .name = name ? strdup(name) : NULL, .detail = detail};
}

static struct adoption take_over(
        struct record_keeper *keeper, const struct device_record *from, const char *text, const char *name)
{
        const struct device_record *record;
        int r = device_store_adopt(keeper->store, from, text, name, &record);

        if (r < 0)
                return verdict(ADOPT_FAILED, name,
                        sentence_print("Storing the record failed: %s. Nothing was changed; try again.",
                                strerror(-r)));
        return verdict(ADOPT_DONE, record->name,
                sentence_print("This ublkd manages the device %s from now on%s.", record->name,
                        record->deleting ? "; it continues the removal that a client asked for" : ""));
}

/* Take back a removed device, with the record of this database. */
static struct adoption take_back(struct record_keeper *keeper, const struct device_record *record)
{
        _cleanup_free_ char *text = record->spec ? cJSON_PrintUnformatted(record->spec->document) : NULL;

        if (!text)
                return verdict(ADOPT_FAILED, record->name,
                        sentence_print("The stored spec of %s is invalid.", record->name));
        return take_over(keeper, record, text, record->name);
}

static struct adoption adopt_file(
        struct record_keeper *keeper, const char *uid, const struct device_record *existing, const char *name)
{
        _cleanup_record_file_ struct record_file file = {};
        int r = read_file(keeper, uid, &file);

        if (r == -ENOENT || r == -EINVAL || file.removed)
                return verdict(ADOPT_UNKNOWN, NULL,
                        sentence_print("The runtime directory has no record with the uid %s.", uid));
        if (r < 0)
                return verdict(ADOPT_BAD_RECORD, NULL, explain_unreadable(uid, r));
        if (existing)
                name = existing->name; /* the name of a device does not change */
        else if (!name)
                name = file.record.name;
        if (!existing && device_store_get(keeper->store, name))
                return verdict(ADOPT_NAME_TAKEN, name, explain_name(name, uid));
        return take_over(keeper, &file.record, file.text, name);
}

struct adoption record_keeper_adopt(struct record_keeper *keeper, const char *uid, const char *name)
{
        const struct device_record *existing = device_store_find_uid(keeper->store, uid);

        if (existing && existing->age == RECORD_CURRENT)
                return verdict(ADOPT_UNCHANGED, existing->name,
                        sentence_print("This ublkd manages the device %s already.", existing->name));
        if (existing && existing->age == RECORD_REMOVED)
                return take_back(keeper, existing);
        return adopt_file(keeper, uid, existing, name);
}
