/* SPDX-License-Identifier: MIT */
/* store_sqlite: what is stored comes back; and each way in which a database can be wrong is one sentence. */
#include "ublkd/store/device_store.h"

#include "tests/unit/check.h"
#include "tests/unit/put_device.h"
#include "tests/unit/remove_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct place {
        char directory[48], database[64];
};

static void place_make(struct place *place)
{
        strcpy(place->directory, "/tmp/store_sqlite_test.XXXXXX");
        if (!mkdtemp(place->directory))
                abort();
        snprintf(place->database, sizeof(place->database), "%s/ublkd.db", place->directory);
}

static void place_remove(const struct place *place)
{
        CHECK_INT(remove_tree(place->directory), 0);
}

static int open_store(const struct place *place, struct device_store **ret)
{
        struct problem_list problems = {};
        const struct device_backend *backend;
        void *context;
        int r = store_sqlite_open(place->directory, &backend, &context, &problems);

        if (r >= 0)
                r = device_store_new(backend, context, ret);
        for (size_t i = 0; i < problems.count; i++)
                fprintf(stderr, "%s\n", problems.items[i].detail);
        problem_list_clear(&problems);
        return r;
}

/* Opening must fail with `error`, and with one sentence that has `words` in it. */
static void check_refused(const struct place *place, int error, const char *reason)
{
        struct problem_list problems = {};
        const struct device_backend *backend;
        void *context = NULL;
        int r = store_sqlite_open(place->directory, &backend, &context, &problems);

        CHECK_INT(r, error);
        CHECK_INT(problems.count, 1);
        if (problems.count == 1)
                CHECK_STR(problems.items[0].reason, reason);
        if (r >= 0)
                backend->close(context);
        problem_list_clear(&problems);
}

static int put(struct device_store *store, const char *name, int id, unsigned depth)
{
        char number[24] = "", more[128];

        if (id >= 0)
                snprintf(number, sizeof(number), ",\"id\":%d", id);
        snprintf(more, sizeof(more), ",\"queueDepth\":%u,\"labels\":{\"n\":\"\\u00e9\"}%s", depth, number);
        return put_null_disk(store, name, more);
}

static void execute(const struct place *place, const char *statements)
{
        char *why = NULL;
        sqlite3 *db;

        CHECK_INT(sqlite3_open(place->database, &db), SQLITE_OK);
        if (!CHECK_INT(sqlite3_exec(db, statements, NULL, NULL, &why), SQLITE_OK))
                fprintf(stderr, "%s: %s\n", statements, why);
        sqlite3_free(why);
        sqlite3_close(db);
}

/* Return a checksum of the file, to see that it did not change. */
static uint64_t fingerprint(const char *path)
{
        FILE *file = fopen(path, "re");
        uint64_t sum = 14695981039346656037u;

        for (int c = file ? fgetc(file) : EOF; c != EOF; c = fgetc(file))
                sum = (sum ^ (unsigned)c) * 1099511628211u;
        if (file)
                fclose(file);
        return sum;
}

static void write_file(const char *path, const char *data, size_t size)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
        close(fd);
}

static void test_everything_comes_back(const struct place *place)
{
        struct device_store *store = NULL;
        static const char boot_of_backing[] = "11111111-2222-3333-4444-555555555555";
        static const struct backing_identity identity = {.basis = BACKING_DISK_WWID,
                .is_disk = true,
                .boot = "diskseq:3+0",
                .lasting = "wwid:\xc3\xa9"};
        const struct device_record *record;
        char uid[UID_TEXT_SIZE], boot[UID_TEXT_SIZE];
        uint64_t revision, created_at;
        struct stat info;

        if (!CHECK_INT(open_store(place, &store), 0))
                return;
        CHECK_INT(stat(place->database, &info), 0);
        CHECK_INT(info.st_mode & 0777, 0600);
        CHECK_INT(put(store, "one", -1, 1), 0);
        CHECK_INT(put(store, "two", 7, 1), 0);
        CHECK_INT(put(store, "two", 7, 2), 0);
        CHECK_INT(put(store, "three", -1, 1), 0);
        CHECK_INT(device_store_set_held(store, "two", true), 0);
        CHECK_INT(device_store_request_stop(store, "two"), 0);
        CHECK_INT(device_store_request_restart(store, "two", false), 0);
        CHECK_INT(device_store_refuse_restart(store, "two"), 0);
        CHECK_INT(device_store_refuse_restart(store, "absent"), -ENOENT);
        CHECK_INT(device_store_set_backing(store, "two", &identity, boot_of_backing), 0);
        CHECK_INT(device_store_set_backing(store, "absent", &identity, boot_of_backing), -ENOENT);
        CHECK_INT(device_store_request_delete(store, "one", false), 0);
        CHECK_INT(device_store_remove(store, "three"), 0);
        record = device_store_get(store, "two");
        strcpy(uid, record->uid);
        strcpy(boot, record->held_boot);
        created_at = record->created_at;
        revision = device_store_revision(store);
        device_store_free(store);

        if (!CHECK_INT(open_store(place, &store), 0))
                return;
        CHECK_INT(device_store_count(store), 2);
        CHECK(device_store_get(store, "one")->deleting);
        CHECK_INT(device_store_get(store, "one")->number, -1);
        record = device_store_get(store, "two");
        CHECK_STR(record->uid, uid);
        CHECK_STR(record->held_boot, boot);
        CHECK(record->stopped); /* until the next boot: see test_a_stop_ends_with_the_boot() */
        CHECK_INT(record->created_at, created_at);
        CHECK_INT(record->generation, 2);
        CHECK_INT(record->epoch, 2);
        CHECK_INT(record->number, 7);
        CHECK(record->recover_requested && !record->deleting);
        CHECK_INT(record->restart, 1);
        CHECK_INT(record->restart_refused, 1);
        CHECK(backing_identity_equal(&record->backing, &identity));
        CHECK_STR(record->backing_boot, boot_of_backing);
        CHECK(backing_identity_is_empty(&device_store_get(store, "one")->backing));
        CHECK(device_store_revision(store) >= revision);
        CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(record->spec->options.labels, "n")), "\xc3\xa9");
        device_store_free(store);
}

static void test_only_one_at_a_time(const struct place *place)
{
        struct device_store *store = NULL;
        pid_t child;
        int status;

        if (!CHECK_INT(open_store(place, &store), 0))
                return;
        child = fork();
        if (child == 0) {
                check_refused(place, -EBUSY, "DatabaseInUse");
                _exit(check_report());
        }
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK_INT(status, 0);
        CHECK_INT(put(store, "data", -1, 1), 0);
        device_store_free(store);
}

static void test_newer_database_is_left_alone(const struct place *place)
{
        struct device_store *store = NULL;
        uint64_t before;

        CHECK_INT(open_store(place, &store), 0);
        device_store_free(store);
        execute(place, "PRAGMA user_version = 999; CREATE TABLE future (x)");
        before = fingerprint(place->database);
        check_refused(place, -EPROTONOSUPPORT, "DatabaseNewer");
        CHECK_INT(fingerprint(place->database), before);
}

/* Also what stands in its write-ahead log only, after a crash of that newer ublkd. */
static void test_log_of_a_newer_database_is_left_alone(const struct place *place)
{
        struct device_store *store = NULL;
        char log[128];
        uint64_t before, before_log;
        pid_t child;
        int status;

        CHECK_INT(open_store(place, &store), 0);
        device_store_free(store);
        child = fork();
        if (child == 0) {
                sqlite3 *db;

                sqlite3_open(place->database, &db);
                sqlite3_exec(db,
                        "PRAGMA journal_mode = WAL; PRAGMA user_version = 999; CREATE TABLE future (x)", NULL,
                        NULL, NULL);
                _exit(0);
        }
        CHECK_INT(waitpid(child, &status, 0), child);
        snprintf(log, sizeof(log), "%s-wal", place->database);
        CHECK_INT(access(log, F_OK), 0);
        before = fingerprint(place->database);
        before_log = fingerprint(log);
        check_refused(place, -EPROTONOSUPPORT, "DatabaseNewer");
        CHECK_INT(fingerprint(place->database), before);
        CHECK_INT(fingerprint(log), before_log);
}

static void test_a_file_that_is_not_a_database(const struct place *place)
{
        char noise[8192];

        memset(noise, 'x', sizeof(noise));
        write_file(place->database, noise, sizeof(noise));
        check_refused(place, -EBADMSG, "DatabaseCorrupt");
        unlink(place->database);
        execute(place, "CREATE TABLE other (x)");
        check_refused(place, -EMEDIUMTYPE, "NotOurDatabase");
        unlink(place->database);
        CHECK_INT(mkdir(place->database, 0700), 0);
        check_refused(place, -EISDIR, "DatabaseFailed");
}

static void test_damaged_database(const struct place *place)
{
        struct device_store *store = NULL;
        char noise[4096];
        char name[16];
        int fd;

        if (!CHECK_INT(open_store(place, &store), 0))
                return;
        for (unsigned i = 0; i < 200; i++) {
                snprintf(name, sizeof(name), "d%u", i);
                CHECK_INT(put(store, name, -1, 1), 0);
        }
        device_store_free(store);
        memset(noise, 0xa5, sizeof(noise));
        fd = open(place->database, O_WRONLY | O_CLOEXEC);
        CHECK_INT(pwrite(fd, noise, sizeof(noise), 4L * 4096), sizeof(noise));
        close(fd);
        check_refused(place, -EBADMSG, "DatabaseCorrupt");
}

static void test_damaged_record_is_quarantined(const struct place *place)
{
        struct device_store *store = NULL;

        CHECK_INT(open_store(place, &store), 0);
        CHECK_INT(put(store, "bad", -1, 1), 0);
        CHECK_INT(put(store, "good", -1, 1), 0);
        device_store_free(store);
        execute(place, "UPDATE device SET spec = '{\"name\":\"bad\",\"colour\":\"red\"}' WHERE name = 'bad'");
        if (!CHECK_INT(open_store(place, &store), 0))
                return;
        CHECK(device_store_get(store, "good")->spec);
        CHECK(!device_store_get(store, "bad")->spec && device_store_get(store, "bad")->quarantine);
        CHECK_INT(device_store_remove(store, "bad"), 0);
        device_store_free(store);
}

static void test_a_stop_ends_with_the_boot(const struct place *place)
{
        struct device_store *store = NULL;

        CHECK_INT(open_store(place, &store), 0);
        CHECK_INT(put(store, "data", -1, 1), 0);
        CHECK_INT(device_store_request_stop(store, "data"), 0);
        device_store_free(store);
        if (!CHECK_INT(open_store(place, &store), 0))
                return;
        CHECK(device_store_get(store, "data")->stopped);
        device_store_free(store);
        execute(place, "UPDATE device SET stopped_boot = '00000000-0000-0000-0000-000000000001'");
        if (!CHECK_INT(open_store(place, &store), 0))
                return;
        CHECK(device_record_enabled(device_store_get(store, "data")));
        device_store_free(store);
}

static void test_impossible_columns_are_quarantined(const struct place *place)
{
        static const char *const changes[] = {"uid = '../../etc'", "number = 99999999", "number = -7",
                "generation = -5", "generation = 0", "epoch = 0", "name = '../evil'"};
        struct device_store *store = NULL;
        char statement[128];

        for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
                const struct device_record *record;

                CHECK_INT(open_store(place, &store), 0);
                CHECK_INT(put(store, "bad", -1, 1), 0);
                device_store_free(store);
                snprintf(statement, sizeof(statement), "UPDATE device SET %s WHERE name = 'bad'", changes[i]);
                execute(place, statement);
                if (!CHECK_INT(open_store(place, &store), 0))
                        return;
                record = device_store_next(store, NULL);
                if (!CHECK(record && !record->spec && record->quarantine))
                        fprintf(stderr, "%s is not noticed\n", changes[i]);
                CHECK(record->number == -1);
                CHECK(record->generation >= 1 && record->generation < 100);
                CHECK(!strchr(record->uid, '/'));
                CHECK_INT(device_store_remove(store, record->name), 0);
                CHECK_INT(device_store_count(store), 0);
                device_store_free(store);
        }
}

static void test_missing_directory(const struct place *place)
{
        struct place missing;

        strcpy(missing.directory, place->directory);
        strcat(missing.directory, "/no");
        check_refused(&missing, -ENOENT, "NoDirectory");
        write_file(missing.directory, "x", 1);
        check_refused(&missing, -ENOTDIR, "NoDirectory");
}

static void test_not_permitted(const struct place *place)
{
        pid_t child;
        int status;

        CHECK_INT(chmod(place->directory, 0555), 0);
        child = fork();
        if (child == 0) {
                if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
                        _exit(2);
                check_refused(place, -EACCES, "NotPermitted");
                _exit(check_report());
        }
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK_INT(status, 0);
        CHECK_INT(chmod(place->directory, 0755), 0);
}

/* RLIMIT_FSIZE looks like a full disk from inside: what does not fit is refused whole, and what was there
 * stays. */
static void fill_the_disk(const struct place *place)
{
        struct rlimit limit = {.rlim_cur = 128 * 1024, .rlim_max = RLIM_INFINITY};
        struct device_store *store = NULL;
        unsigned stored = 0;
        char name[16];
        int r = 0;

        if (!CHECK_INT(open_store(place, &store), 0))
                return;
        CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
        CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
        while (r >= 0 && stored < 10000) {
                snprintf(name, sizeof(name), "d%u", stored);
                r = put(store, name, -1, 1);
                stored += r >= 0;
        }
        CHECK_INT(r, -ENOSPC);
        CHECK(stored > 0);
        CHECK_INT(device_store_count(store), stored);
        CHECK_INT(device_store_remove(store, "d0"), -ENOSPC);
        limit.rlim_cur = RLIM_INFINITY;
        CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
        CHECK_INT(put(store, name, -1, 1), 0);
        CHECK_INT(device_store_remove(store, "d0"), 0);
        device_store_free(store);
        if (!CHECK_INT(open_store(place, &store), 0))
                return;
        CHECK_INT(device_store_count(store), stored);
        device_store_free(store);
}

static void test_full_disk(const struct place *place)
{
        pid_t child = fork();
        int status;

        if (child == 0) {
                fill_the_disk(place);
                _exit(check_report());
        }
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK_INT(status, 0);
}

/* SQLite writes on to a file without a name, and all of it is lost at the end. */
static void test_a_database_that_was_deleted(const struct place *place)
{
        struct device_store *store;

        if (!CHECK_INT(open_store(place, &store), 0))
                return;
        CHECK_INT(put(store, "one", -1, 1), 0);
        CHECK_INT(device_store_check(store), 0);
        CHECK_INT(unlink(place->database), 0);
        CHECK_INT(device_store_check(store), -ENOLINK);
        CHECK(!device_store_is_gone(store)); /* which looks at nothing */
        CHECK_INT(put(store, "two", -1, 1), -ENOLINK);
        CHECK(device_store_is_gone(store));
        CHECK_INT(device_store_request_delete(store, "one", false), -ENOLINK);
        CHECK(!device_store_get(store, "two") && !device_store_get(store, "one")->deleting);
        device_store_free(store);
}

static void test_a_database_that_is_moved_away_and_back(const struct place *place)
{
        struct device_store *store;
        char aside[80];

        snprintf(aside, sizeof(aside), "%s.aside", place->database);
        if (!CHECK_INT(open_store(place, &store), 0))
                return;
        CHECK_INT(rename(place->database, aside), 0);
        CHECK_INT(close(open(place->database, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
        CHECK_INT(device_store_check(store), -ENOLINK); /* another file */
        CHECK_INT(put(store, "two", -1, 1), -ENOLINK);
        CHECK_INT(rename(aside, place->database), 0);
        CHECK_INT(device_store_check(store), 0);
        CHECK(device_store_is_gone(store)); /* until a write, or a look, has found it */
        CHECK_INT(put(store, "two", -1, 1), 0);
        CHECK(!device_store_is_gone(store));
        device_store_free(store);
}

/* A path that cannot be looked at, as on a server with a bad moment: it was once reported as a database that is gone. */
static void test_a_database_that_cannot_be_looked_at(const struct place *place)
{
        struct device_store *store;
        char aside[80];

        snprintf(aside, sizeof(aside), "%s.aside", place->database);
        if (!CHECK_INT(open_store(place, &store), 0))
                return;
        CHECK_INT(rename(place->database, aside), 0);
        CHECK_INT(symlink(place->database, place->database), 0); /* -ELOOP */
        CHECK_INT(device_store_check(store), -EIO);
        CHECK_INT(put(store, "one", -1, 1), -EIO);
        CHECK(!device_store_is_gone(store));
        CHECK_INT(rename(aside, place->database), 0);
        CHECK_INT(put(store, "one", -1, 1), 0);
        device_store_free(store);
}

static void test_full_disk_at_the_start(const struct place *place)
{
        struct rlimit limit = {.rlim_cur = 512, .rlim_max = RLIM_INFINITY};
        pid_t child = fork();
        int status;

        if (child == 0) {
                CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
                CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
                check_refused(place, -ENOSPC, "DiskFull");
                _exit(check_report());
        }
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK_INT(status, 0);
}

/* The child says over the pipe what was acknowledged; it is killed at any moment. */
static void write_until_killed(const struct place *place, int fd)
{
        struct device_store *store = NULL;
        char name[16];

        if (open_store(place, &store) < 0)
                _exit(2);
        for (unsigned i = 0;; i++) {
                unsigned generation;

                snprintf(name, sizeof(name), "d%u", i % 50);
                if (put(store, name, -1, 1 + i % 4096) < 0)
                        _exit(3);
                generation = (unsigned)device_store_get(store, name)->generation;
                if (write(fd, &(unsigned[2]){i % 50, generation}, 2 * sizeof(unsigned))
                        != 2 * sizeof(unsigned))
                        _exit(4);
        }
}

static void test_acknowledged_survives_a_kill(const struct place *place)
{
        for (unsigned round = 0; round < 20; round++) {
                unsigned acknowledged[2], generations[50] = {}, total = 0;
                struct device_store *store = NULL;
                char name[16];
                int fds[2];
                pid_t child;

                CHECK_INT(pipe2(fds, O_CLOEXEC), 0);
                child = fork();
                if (child == 0)
                        write_until_killed(place, fds[1]);
                close(fds[1]);
                while (read(fds[0], acknowledged, sizeof(acknowledged)) == sizeof(acknowledged)) {
                        generations[acknowledged[0]] = acknowledged[1];
                        if (++total == 5 + round * 13)
                                kill(child, SIGKILL);
                }
                close(fds[0]);
                CHECK_INT(waitpid(child, NULL, 0), child);
                CHECK(total >= 5 + round * 13);
                if (!CHECK_INT(open_store(place, &store), 0))
                        return;
                for (unsigned i = 0; i < 50; i++) {
                        const struct device_record *record;

                        snprintf(name, sizeof(name), "d%u", i);
                        record = device_store_get(store, name);
                        if (generations[i] > 0 && CHECK(record && record->spec))
                                CHECK(record->generation >= generations[i]);
                }
                device_store_free(store);
        }
}

int main(void)
{
        static void (*const tests[])(const struct place *) = {test_everything_comes_back,
                test_only_one_at_a_time, test_newer_database_is_left_alone,
                test_log_of_a_newer_database_is_left_alone, test_a_file_that_is_not_a_database,
                test_damaged_database, test_damaged_record_is_quarantined, test_a_stop_ends_with_the_boot,
                test_impossible_columns_are_quarantined, test_missing_directory, test_not_permitted,
                test_full_disk, test_full_disk_at_the_start, test_a_database_that_was_deleted,
                test_a_database_that_is_moved_away_and_back, test_a_database_that_cannot_be_looked_at,
                test_acknowledged_survives_a_kill};

        for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
                struct place place;

                place_make(&place);
                tests[i](&place);
                place_remove(&place);
        }
        return check_report();
}
