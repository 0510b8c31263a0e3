/* SPDX-License-Identifier: MIT */
/* A database that is lost, is an older copy, or is another one: what its records are then, and how they come
 * back. */
#include "tests/unit/check.h"
#include "tests/unit/put_device.h"
#include "tests/unit/remove_tree.h"
#include "ublkd/records/record_keeper.h"

#include "ublkd/model/device_cookie.h"
#include "ublkd/records/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct place {
        char path[48];
        struct runtime_dir *dir;
        struct device_store *store;
        struct record_keeper *keeper;
};

static void run(const struct place *place, const char *format)
{
        char command[256];

        snprintf(command, sizeof(command), "cd %s && %s", place->path, format);
        CHECK_INT(system(command), 0);
}

static void start(struct place *place)
{
        _cleanup_problems_ struct problem_list problems = {};
        const struct device_backend *backend;
        char state[64];
        void *context;

        snprintf(state, sizeof(state), "%s/state", place->path);
        (void)mkdir(state, 0700);
        CHECK_INT(store_sqlite_open(state, &backend, &context, &problems), 0);
        CHECK_INT(device_store_new(backend, context, &place->store), 0);
        CHECK_INT(record_keeper_new(place->store, place->dir, &place->keeper), 0);
}

static void stop(struct place *place)
{
        record_keeper_free(place->keeper);
        device_store_free(place->store);
}

static void stop_and(struct place *place, const char *command)
{
        stop(place);
        run(place, command);
}

static void put(struct place *place, const char *name, const char *more)
{
        CHECK_INT(put_null_disk(place->store, name, more), 0);
}

static void create(struct place *place, const char *name, int number)
{
        put(place, name, "");
        CHECK_INT(device_store_assign_number(place->store, name, number), 0);
}

static const struct device_record *get(const struct place *place, const char *name)
{
        return device_store_get(place->store, name);
}

static const char *uid_of(const struct place *place, const char *name)
{
        static char uid[UID_TEXT_SIZE];

        strcpy(uid, get(place, name)->uid);
        return uid;
}

static char *file_of(const struct place *place, const char *uid, const char *suffix)
{
        char *path = NULL;

        CHECK(asprintf(&path, "%s/run/workers/%s%s", place->path, uid, suffix) > 0);
        return path;
}

static enum adopt_verdict adopt(struct place *place, const char *uid, const char *name)
{
        struct adoption adoption = record_keeper_adopt(place->keeper, uid, name);
        enum adopt_verdict verdict = adoption.verdict;

        CHECK(adoption.detail && *adoption.detail);
        adoption_clear(&adoption);
        return verdict;
}

static size_t list(struct place *place, struct adoptables *ret)
{
        CHECK_INT(record_keeper_list(place->keeper, 100, ret), 0);
        return ret->count;
}

static void test_the_copy_follows_the_record(struct place *place)
{
        _cleanup_free_ char *text = NULL, *path = NULL;
        _cleanup_record_file_ struct record_file file = {};
        struct stat st;

        start(place);
        create(place, "data", 4);
        put(place, "data", ",\"labels\":{\"a\":\"b\"}");
        CHECK_INT(device_store_request_restart(place->store, "data", false), 0);
        path = file_of(place, uid_of(place, "data"), ".record");
        CHECK_INT(stat(path, &st), 0);
        CHECK_INT(st.st_mode & 07777, 0600);
        CHECK_INT(runtime_dir_read_record(place->dir, uid_of(place, "data"), RECORD_FILE_SIZE_MAX, &text), 0);
        CHECK_INT(record_file_parse(text, uid_of(place, "data"), &file), 0);
        CHECK_INT(file.record.generation, 2);
        CHECK_INT(file.record.restart, 1);
        CHECK_INT(file.record.number, 4);
        CHECK(device_spec_equal(file.record.spec, get(place, "data")->spec));
        CHECK_INT(device_store_remove(place->store, "data"), 0);
        CHECK(access(path, F_OK) < 0);
        stop(place);
}

static void test_a_lost_database(struct place *place)
{
        struct adoptables found = {};
        char uid[UID_TEXT_SIZE];

        start(place);
        create(place, "data", 4);
        put(place, "data", ",\"queueDepth\":64"); /* a new epoch */
        strcpy(uid, uid_of(place, "data"));
        CHECK_INT(list(place, &found), 0);
        stop_and(place, "rm -r state");

        start(place);
        CHECK_INT(device_store_count(place->store), 0);
        if (CHECK_INT(list(place, &found), 1)) {
                CHECK_STR(found.items[0].uid, uid);
                CHECK_STR(found.items[0].name, "data");
                CHECK_INT(found.items[0].number, 4);
                CHECK_INT(found.items[0].verdict, ADOPT_POSSIBLE);
        }
        CHECK_INT(adopt(place, uid, NULL), ADOPT_DONE);
        CHECK_INT(adopt(place, uid, NULL), ADOPT_UNCHANGED);
        CHECK_INT(adopt(place, "00000000-0000-4000-8000-000000000000", NULL), ADOPT_UNKNOWN);
        CHECK_INT(adopt(place, "../../etc", NULL), ADOPT_UNKNOWN);
        CHECK_INT(list(place, &found), 0);
        stop(place);

        start(place); /* it was stored */
        CHECK_STR(uid_of(place, "data"), uid);
        CHECK_INT(get(place, "data")->generation, 2);
        CHECK_INT(get(place, "data")->epoch, 2);
        CHECK_INT(get(place, "data")->number, 4);
        CHECK_INT(get(place, "data")->age, RECORD_CURRENT);
        stop(place);
        adoptables_clear(&found);
}

static void test_a_name_that_is_taken(struct place *place)
{
        struct adoptables found = {};
        char uid[UID_TEXT_SIZE];

        start(place);
        create(place, "data", 4);
        strcpy(uid, uid_of(place, "data"));
        stop_and(place, "rm -r state");
        start(place);
        put(place, "data", "");
        if (CHECK_INT(list(place, &found), 1))
                CHECK_INT(found.items[0].verdict, ADOPT_NAME_TAKEN);
        CHECK_INT(adopt(place, uid, NULL), ADOPT_NAME_TAKEN);
        CHECK_INT(adopt(place, uid, "data"), ADOPT_NAME_TAKEN);
        CHECK_INT(adopt(place, uid, "other"), ADOPT_DONE);
        CHECK_STR(uid_of(place, "other"), uid);
        CHECK_INT(get(place, "other")->generation, 2);
        CHECK_STR(get(place, "other")->spec->options.name, "other");
        CHECK_INT(get(place, "other")->number, 4);
        stop(place);
        adoptables_clear(&found);
}

/* The disk of the number is the adopted device's, unless the other one is seen to have it. */
static void test_a_number_that_is_taken(struct place *place)
{
        char uid[UID_TEXT_SIZE];

        for (int disk = 0; disk < 2; disk++) {
                start(place);
                create(place, "data", 4);
                strcpy(uid, uid_of(place, "data"));
                stop_and(place, "rm -r state");
                start(place);
                create(place, "other", 4);
                if (disk)
                        CHECK_INT(device_store_set_status(place->store, "other",
                                          &(struct device_status){
                                                  .phase = PHASE_LIVE, .disk = true, .number = 4}),
                                0);
                CHECK_INT(adopt(place, uid, NULL), ADOPT_DONE);
                CHECK_INT(get(place, "data")->number, disk ? -1 : 4);
                CHECK_INT(get(place, "other")->number, disk ? 4 : -1);
                CHECK_INT(device_store_remove(place->store, "data"), 0);
                CHECK_INT(device_store_remove(place->store, "other"), 0);
                stop(place);
        }
}

/* Over any number of starts, and whatever else is written meanwhile. */
static void test_an_older_database(struct place *place)
{
        struct adoptables found = {};
        struct device_status status = {.phase = PHASE_LIVE, .number = -1};
        char uid[UID_TEXT_SIZE];

        start(place);
        create(place, "data", 4);
        create(place, "same", 5);
        strcpy(uid, uid_of(place, "data"));
        stop_and(place, "cp -r state backup");
        start(place);
        put(place, "data", ",\"queueDepth\":64");
        stop_and(place, "rm -r state; cp -r backup state");

        for (int i = 0; i < 3; i++) {
                start(place);
                CHECK_INT(get(place, "data")->age, RECORD_OUTDATED);
                CHECK_INT(get(place, "data")->status.reason, REASON_RECORD_OUTDATED);
                CHECK_INT(get(place, "data")->status.phase, PHASE_FAILED);
                CHECK_INT(get(place, "same")->age, RECORD_CURRENT);
                CHECK_INT(put_null_disk(place->store, "data", ""), -EUCLEAN);
                CHECK_INT(put_null_disk(place->store, "data", ",\"labels\":{\"a\":\"b\"}"), -EUCLEAN);
                CHECK_INT(device_store_set_status(place->store, "same", &status), 0);
                put(place, "same", i % 2 ? "" : ",\"labels\":{\"a\":\"b\"}");
                stop(place);
        }
        start(place);
        if (CHECK_INT(list(place, &found), 1)) {
                CHECK_INT(found.items[0].age, RECORD_OUTDATED);
                CHECK_INT(found.items[0].verdict, ADOPT_POSSIBLE);
        }
        CHECK_INT(adopt(place, uid, NULL), ADOPT_DONE);
        CHECK_INT(get(place, "data")->age, RECORD_CURRENT);
        CHECK_INT(get(place, "data")->epoch, 2);
        CHECK_INT(get(place, "data")->spec->options.queue_depth, 64);
        CHECK_INT(put_null_disk(place->store, "data", ""), 0);
        stop(place);
        start(place);
        CHECK_INT(get(place, "data")->age, RECORD_CURRENT);
        CHECK_INT(get(place, "data")->generation, 3);
        stop(place);
        adoptables_clear(&found);
}

static void check_shown(const struct place *place, int number, bool disk, pid_t pid)
{
        const struct device_status *status = &get(place, "data")->status;

        CHECK_INT(status->phase, PHASE_FAILED);
        CHECK_INT(status->reason, REASON_RECORD_OUTDATED);
        CHECK_INT(status->number, number);
        CHECK_INT(status->disk, disk);
        CHECK_INT(status->worker.pid, pid);
        CHECK(strstr(status->message, "'ublkctl adopt data'"));
        CHECK(!!strstr(status->message, "/dev/ublkb") == disk);
        CHECK(!!strstr(status->message, "process 4211") == (pid > 0));
}

/* It was shown without a node, as if there were no disk. The older record may know no number, or another. */
static void test_the_disk_of_an_outdated_record_is_shown(struct place *place)
{
        struct foreign_disk items[2] = {};
        struct foreign_disks found = {.items = items, .count = 2};
        uint64_t revision;

        start(place);
        put(place, "data", "");
        stop_and(place, "cp -r state backup");
        start(place);
        CHECK_INT(device_store_assign_number(place->store, "data", 7), 0);
        put(place, "data", ",\"queueDepth\":64");
        stop_and(place, "rm -r state; cp -r backup state");
        start(place);
        check_shown(place, -1, false, 0);

        items[0] = (struct foreign_disk){.number = 3, .cookie = 0x1234};
        items[1] = (struct foreign_disk){
                .number = 7, .cookie = device_cookie(uid_of(place, "data"), 2), .server_pid = 4211};
        CHECK_INT(record_keeper_show_disks(place->keeper, &found), 0);
        check_shown(place, 7, true, 4211);
        revision = device_store_revision(place->store);
        CHECK_INT(record_keeper_show_disks(place->keeper, &found), 0);
        CHECK_INT(device_store_revision(place->store), revision); /* nothing has changed */

        items[1].server_pid = 0;
        CHECK_INT(record_keeper_show_disks(place->keeper, &found), 0);
        check_shown(place, 7, true, 0);
        found.count = 1;
        CHECK_INT(record_keeper_show_disks(place->keeper, &found), 0);
        check_shown(place, -1, false, 0);
        CHECK_INT(adopt(place, uid_of(place, "data"), NULL), ADOPT_DONE);
        stop(place);
}

/* Two disks: "data" got another number after the database was copied, and "late" got that of "data". */
static void test_the_number_of_a_disk_is_not_that_of_an_outdated_record(struct place *place)
{
        struct foreign_disk items[2] = {};
        struct foreign_disks found = {.items = items, .count = 2};
        char uid[UID_TEXT_SIZE];

        start(place);
        create(place, "data", 5);
        stop_and(place, "cp -r state backup");
        start(place);
        put(place, "data", ",\"id\":3");
        CHECK_INT(device_store_assign_number(place->store, "data", 3), 0);
        create(place, "late", 5);
        strcpy(uid, uid_of(place, "late"));
        items[0] = (struct foreign_disk){.number = 3, .cookie = device_cookie(uid_of(place, "data"), 2)};
        items[1] = (struct foreign_disk){.number = 5, .cookie = device_cookie(uid, 1)};
        stop_and(place, "rm -r state; cp -r backup state");
        start(place);
        CHECK_INT(get(place, "data")->number, 5);
        CHECK_INT(record_keeper_show_disks(place->keeper, &found), 0);
        check_shown(place, 3, true, 0);
        CHECK_INT(adopt(place, uid, NULL), ADOPT_DONE);
        CHECK_INT(get(place, "late")->number, 5);
        CHECK_INT(get(place, "data")->number, -1);
        stop(place);
}

static void test_a_device_that_was_removed_since(struct place *place)
{
        struct adoptables found = {};
        char uid[UID_TEXT_SIZE];

        start(place);
        create(place, "kept", 4);
        create(place, "gone", 5);
        create(place, "away", 6);
        strcpy(uid, uid_of(place, "gone"));
        stop_and(place, "cp -r state backup");
        start(place);
        CHECK_INT(device_store_request_delete(place->store, "gone", false), 0);
        CHECK_INT(device_store_remove(place->store, "gone"), 0);
        CHECK_INT(device_store_remove(place->store, "away"), 0);
        stop_and(place, "rm -r state; cp -r backup state");

        for (int i = 0; i < 3; i++) {
                start(place);
                CHECK_INT(get(place, "kept")->age, RECORD_CURRENT);
                CHECK_INT(get(place, "gone")->age, RECORD_REMOVED);
                CHECK_INT(get(place, "gone")->status.reason, REASON_RECORD_REMOVED);
                put(place, "kept", i % 2 ? "" : ",\"labels\":{\"a\":\"b\"}");
                CHECK_INT(list(place, &found), 2);
                for (size_t j = 0; j < found.count; j++)
                        CHECK_INT(found.items[j].verdict, ADOPT_NOT_ASKED);
                stop(place);
        }
        start(place);
        CHECK_INT(adopt(place, uid, NULL), ADOPT_DONE);
        CHECK_INT(get(place, "gone")->age, RECORD_CURRENT);
        CHECK_INT(device_store_remove(place->store, "away"), 0);
        stop(place);
        start(place);
        CHECK_INT(get(place, "gone")->age, RECORD_CURRENT);
        CHECK(!get(place, "away"));
        CHECK_INT(list(place, &found), 0);
        stop(place);
        adoptables_clear(&found);
}

/* Dies between the commit and the copy: the record counts. */
static void test_a_copy_that_is_late(struct place *place)
{
        struct adoptables found = {};
        _cleanup_free_ char *path = NULL;

        start(place);
        create(place, "data", 4);
        path = file_of(place, uid_of(place, "data"), ".record");
        record_keeper_free(place->keeper);
        put(place, "data", ",\"queueDepth\":64");
        put(place, "new", "");
        device_store_free(place->store);
        start(place);
        CHECK_INT(get(place, "data")->age, RECORD_CURRENT);
        CHECK_INT(get(place, "data")->epoch, 2);
        CHECK_INT(get(place, "new")->age, RECORD_CURRENT);
        CHECK_INT(device_store_request_delete(place->store, "data", false), 0);
        record_keeper_free(place->keeper);
        CHECK_INT(device_store_remove(place->store, "data"), 0);
        device_store_free(place->store);
        CHECK_INT(access(path, F_OK), 0);
        start(place); /* the copy of a record that was erased goes */
        CHECK(access(path, F_OK) < 0);
        CHECK_INT(list(place, &found), 0);
        stop_and(place, "rm -r state");
        start(place);
        if (CHECK_INT(list(place, &found), 1))
                CHECK_STR(found.items[0].name, "new");
        stop(place);
        adoptables_clear(&found);
}

static void write_text(const char *path, const char *text, off_t size)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
        CHECK_INT(ftruncate(fd, size), 0);
        close(fd);
}

static void test_copies_that_cannot_be_read(struct place *place)
{
        static const struct {
                const char *text;
                off_t size;
        } table[] = {
                {"",                0                              },
                {"{\"version\":1,", 13                             },
                {"{\"version\":2}", 13                             },
                {"x",               RECORD_FILE_SIZE_MAX + (off_t)1},
        };
        struct adoptables found = {};
        _cleanup_free_ char *path = NULL;
        char uid[UID_TEXT_SIZE];

        start(place);
        create(place, "data", 4);
        strcpy(uid, uid_of(place, "data"));
        path = file_of(place, uid, ".record");
        stop_and(place, "cp -r state backup; rm -r state");
        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                write_text(path, table[i].text, table[i].size);
                start(place);
                if (CHECK_INT(list(place, &found), 1)) {
                        CHECK_STR(found.items[0].uid, uid);
                        CHECK(!found.items[0].name);
                        CHECK_INT(found.items[0].verdict, ADOPT_BAD_RECORD);
                }
                CHECK_INT(adopt(place, uid, NULL), ADOPT_BAD_RECORD);
                CHECK_INT(access(path, F_OK), 0);
                stop(place);
        }
        run(place, "rm -r state; cp -r backup state");
        start(place); /* another database ran since: it is not known whether the device was removed */
        CHECK_INT(get(place, "data")->age, RECORD_REMOVED);
        stop(place);
        adoptables_clear(&found);
}

/* A disk is not made without it. */
static void test_a_copy_that_cannot_be_written(struct place *place)
{
        _cleanup_free_ char *obstacle = NULL;

        start(place);
        put(place, "data", "");
        CHECK_INT(record_keeper_ensure(place->keeper, "data"), 0);
        CHECK(asprintf(&obstacle, "%s/run/workers/.%s.record.new", place->path, uid_of(place, "data")) > 0);
        CHECK_INT(mkdir(obstacle, 0700), 0);
        put(place, "data", ",\"labels\":{\"a\":\"b\"}");
        CHECK(record_keeper_ensure(place->keeper, "data") < 0);
        CHECK_INT(rmdir(obstacle), 0);
        CHECK_INT(record_keeper_ensure(place->keeper, "data"), 0);
        stop_and(place, "rm -r state");
        start(place);
        CHECK_INT(device_store_count(place->store), 0);
        stop(place);
}

int main(void)
{
        static void (*const tests[])(struct place *) = {test_the_copy_follows_the_record,
                test_a_lost_database, test_a_name_that_is_taken, test_a_number_that_is_taken,
                test_an_older_database, test_the_disk_of_an_outdated_record_is_shown,
                test_the_number_of_a_disk_is_not_that_of_an_outdated_record,
                test_a_device_that_was_removed_since, test_a_copy_that_is_late,
                test_copies_that_cannot_be_read, test_a_copy_that_cannot_be_written};

        for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
                _cleanup_problems_ struct problem_list problems = {};
                struct place place = {.path = "/tmp/record_keeper_test.XXXXXX"};
                char path[64];

                if (!mkdtemp(place.path))
                        return 1;
                snprintf(path, sizeof(path), "%s/run", place.path);
                CHECK_INT(runtime_dir_open(path, &place.dir, &problems), 0);
                tests[i](&place);
                runtime_dir_free(place.dir);
                CHECK_INT(remove_tree(place.path), 0);
        }
        return check_report();
}
