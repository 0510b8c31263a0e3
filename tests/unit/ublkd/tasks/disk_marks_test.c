/* SPDX-License-Identifier: MIT */
/* disk_marks: what a service manager finds in the runtime directory. */
#include "ublkd/tasks/disk_marks.h"

#include "tests/unit/check.h"
#include "tests/unit/put_device.h"
#include "tests/unit/remove_tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct place {
        char path[48];
        struct runtime_dir *dir;
        struct device_store *store;
        struct disk_marks *marks;
};

/* Return whether there is a mark, with its text. */
static bool has(const struct place *place, const char *kind, char text[static 128])
{
        char path[128];
        FILE *file;
        size_t n;

        snprintf(path, sizeof(path), "%s/%s/data", place->path, kind);
        file = fopen(path, "re");
        if (!file)
                return false;
        n = fread(text, 1, 127, file);
        text[n] = '\0';
        fclose(file);
        return true;
}

static void check_marks(const struct place *place, bool live, const char *failed)
{
        char text[128];

        CHECK_INT(has(place, "live", text), live);
        CHECK_INT(has(place, "failed", text), failed != NULL);
        if (failed)
                CHECK_STR(text, failed);
}

static void set_status(const struct place *place, enum device_phase phase, const char *message)
{
        const struct device_status status = {.phase = phase, .number = -1, .message = (char *)message};

        CHECK_INT(device_store_set_status(place->store, "data", &status), 0);
}

static void open_place(struct place *place)
{
        const struct device_backend *backend;
        struct problem_list problems = {};
        void *context;

        CHECK_INT(store_memory_open(&backend, &context), 0);
        CHECK_INT(device_store_new(backend, context, &place->store), 0);
        strcpy(place->path, "/tmp/disk_marks_test.XXXXXX");
        CHECK(mkdtemp(place->path));
        CHECK_INT(runtime_dir_open(place->path, &place->dir, &problems), 0);
}

static void test_marks_follow_the_status(struct place *place)
{
        CHECK_INT(disk_marks_new(place->store, place->dir, &place->marks), 0);
        CHECK_INT(put_null_disk(place->store, "data", ""), 0);
        check_marks(place, false, NULL);
        set_status(place, PHASE_STARTING, "It starts.");
        check_marks(place, false, NULL);
        set_status(place, PHASE_LIVE, "It serves.");
        check_marks(place, true, NULL);
        set_status(place, PHASE_RECOVERING, "Its worker died."); /* at once, as a rule */
        check_marks(place, true, NULL);
        set_status(place, PHASE_BACKOFF, "No file.");
        check_marks(place, false, "No file.\n");
        set_status(place, PHASE_RECOVERING, "Its worker died.");
        check_marks(place, false, "No file.\n");
        set_status(place, PHASE_LIVE, "It serves.");
        check_marks(place, true, NULL);
        set_status(place, PHASE_STOPPING, "It is removed.");
        check_marks(place, false, NULL);
        set_status(place, PHASE_FAILED, "No.");
        CHECK_INT(device_store_remove(place->store, "data"), 0);
        check_marks(place, false, NULL);
}

/* The cause alone, if an attempt has failed: one mark for all attempts. */
static void test_the_mark_has_the_cause(struct place *place)
{
        struct device_status status = {.phase = PHASE_BACKOFF, .number = -1, .cause = (char *)"No file."};

        CHECK_INT(put_null_disk(place->store, "data", ""), 0);
        status.message = (char *)"No file. Attempt 3 failed.";
        CHECK_INT(device_store_set_status(place->store, "data", &status), 0);
        check_marks(place, false, "No file.\n");
        status.phase = PHASE_FAILED; /* its cause is of something else */
        CHECK_INT(device_store_set_status(place->store, "data", &status), 0);
        check_marks(place, false, "No file. Attempt 3 failed.\n");
        CHECK_INT(device_store_remove(place->store, "data"), 0);
}

/* A ublkd that starts leaves the marks of its disks alone until it knows them; other marks go. */
static void test_a_start_keeps_marks(struct place *place)
{
        CHECK_INT(put_null_disk(place->store, "data", ""), 0);
        set_status(place, PHASE_LIVE, "It serves.");
        place->marks = disk_marks_free(place->marks);
        set_status(place, PHASE_UNKNOWN, "Not yet known.");
        CHECK_INT(disk_marks_new(place->store, place->dir, &place->marks), 0);
        check_marks(place, true, NULL);
        place->marks = disk_marks_free(place->marks);
        CHECK_INT(device_store_remove(place->store, "data"),
                0); /* a database that was lost: the disk is served */
        CHECK_INT(disk_marks_new(place->store, place->dir, &place->marks), 0);
        check_marks(place, true, NULL);
}

/* A machine without the driver; a disk that was in service may still be. */
static void test_the_mark_has_the_problem_of_the_host(struct place *place)
{
        static const enum device_phase phases[] = {PHASE_PENDING, PHASE_UNKNOWN};
        struct device_status status = {
                .number = -1, .reason = REASON_HOST_NOT_READY, .message = (char *)"No driver."};

        for (size_t i = 0; i < ARRAY_SIZE(phases); i++) {
                CHECK_INT(put_null_disk(place->store, "data", ""), 0);
                status.phase = phases[i];
                CHECK_INT(device_store_set_status(place->store, "data", &status), 0);
                check_marks(place, false, "No driver.\n");
                set_status(place, PHASE_LIVE, "It serves.");
                CHECK_INT(device_store_set_status(place->store, "data", &status), 0);
                check_marks(place, true, NULL);
                set_status(place, PHASE_DISABLED, "It is off.");
                CHECK_INT(device_store_remove(place->store, "data"), 0);
        }
}

/* Names of tenants' devices are in it. An earlier ublkd has made the directories for all to read. */
static void test_only_root_lists_the_marks(struct place *place)
{
        static const char *const names[] = {"live", "failed"};
        struct stat info;
        char path[64];

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                snprintf(path, sizeof(path), "%s/%s", place->path, names[i]);
                CHECK_INT(chmod(path, 0755), 0);
        }
        CHECK_INT(put_null_disk(place->store, "data", ""), 0);
        set_status(place, PHASE_LIVE, "It serves.");
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                snprintf(path, sizeof(path), "%s/%s", place->path, names[i]);
                CHECK_INT(stat(path, &info), 0);
                CHECK_INT(info.st_mode, S_IFDIR | 0700);
        }
        CHECK_INT(device_store_remove(place->store, "data"), 0);
}

/* What counts is whether the disk is served. */
static void test_the_facts_decide(struct place *place)
{
        struct device_status status = {.number = -1, .disk = true, .worker.pid = 1, .message = (char *)"So."};

        CHECK_INT(put_null_disk(place->store, "data", ""), 0);
        set_status(place, PHASE_LIVE, "It serves.");
        status.phase = PHASE_STOPPING; /* an opener may keep it */
        CHECK_INT(device_store_set_status(place->store, "data", &status), 0);
        check_marks(place, true, NULL);
        status.phase = PHASE_FAILED;
        CHECK_INT(device_store_set_status(place->store, "data", &status), 0);
        check_marks(place, true, NULL);
        status.worker.pid = 0;
        status.phase = PHASE_STOPPING;
        status.reason = REASON_GAVE_UP;
        CHECK_INT(device_store_set_status(place->store, "data", &status), 0);
        check_marks(place, false, "So.\n");
        status = (struct device_status){.number = -1, .phase = PHASE_STARTING};
        set_status(place, PHASE_LIVE, "It serves.");
        CHECK_INT(device_store_set_status(place->store, "data", &status), 0); /* the disk is gone */
        check_marks(place, false, NULL);
        CHECK_INT(device_store_remove(place->store, "data"), 0);
}

static void check_path(const struct place *place, const char *spec, const char *tenant, const char *expected)
{
        char text[128];

        CHECK_INT(put_device_of(place->store, spec, tenant), 0);
        set_status(place, PHASE_LIVE, "It serves.");
        if (CHECK(has(place, "live", text)))
                CHECK_STR(text, expected);
        set_status(place, PHASE_DISABLED, "It is off.");
        CHECK_INT(device_store_remove(place->store, "data"), 0);
}

/* The path of the store is in the mark if it means the same to the service manager. */
static void test_the_mark_has_the_path(struct place *place)
{
        check_path(place, "{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\"}", NULL, "\n");
        check_path(place,
                "{\"name\":\"data\",\"target\":{\"type\":\"loop\",\"path\":\"/srv/a "
                "b.img\"},\"size\":\"1MiB\"}",
                NULL, "/srv/a b.img\n");
        check_path(place,
                "{\"name\":\"data\",\"target\":{\"type\":\"loop\",\"path\":\"/srv/"
                "a\\nb\"},\"size\":\"1MiB\"}",
                NULL, "\n");
        check_path(place,
                "{\"name\":\"data\",\"target\":{\"type\":\"loop\",\"path\":\"/srv/a\"},\"size\":\"1MiB\"}",
                "uid:1000", "\n");
        check_path(place,
                "{\"name\":\"data\",\"target\":{\"type\":\"stripe\",\"children\":[{\"type\":\"loop\","
                "\"path\":\"/srv/a\"},{\"type\":\"loop\",\"path\":\"/b\\nc\"},{\"type\":\"loop\",\"path\":\"/"
                "d\"}]}}",
                NULL, "/srv/a\n/d\n");
}

/* The one that serves now; a recovery leaves the last one until there is another. */
static void test_the_mark_has_the_worker(struct place *place)
{
        struct device_status status = {.number = -1, .disk = true, .phase = PHASE_LIVE, .worker.pid = 7};
        char text[128];

        CHECK_INT(put_device_of(place->store,
                          "{\"name\":\"data\",\"target\":{\"type\":\"loop\",\"path\":\"/a\"}}", NULL),
                0);
        CHECK_INT(device_store_set_status(place->store, "data", &status), 0);
        if (CHECK(has(place, "live", text)))
                CHECK_STR(text, "worker 7\n/a\n");
        status.worker.pid = 0;
        status.phase = PHASE_RECOVERING;
        CHECK_INT(device_store_set_status(place->store, "data", &status), 0);
        if (CHECK(has(place, "live", text)))
                CHECK_STR(text, "worker 7\n/a\n");
        status.worker.pid = 8;
        status.phase = PHASE_LIVE;
        CHECK_INT(device_store_set_status(place->store, "data", &status), 0);
        if (CHECK(has(place, "live", text)))
                CHECK_STR(text, "worker 8\n/a\n");
        CHECK_INT(device_store_remove(place->store, "data"), 0);
}

static void test_marks_are_written_again(struct place *place)
{
        char path[128];

        CHECK_INT(put_null_disk(place->store, "data", ""), 0);
        set_status(place, PHASE_LIVE, "It serves.");
        snprintf(path, sizeof(path), "%s/live", place->path);
        CHECK_INT(remove_tree(path), 0);
        check_marks(place, false, NULL);
        disk_marks_rewrite(place->marks);
        check_marks(place, true, NULL);
        disk_marks_rewrite(NULL);
}

int main(void)
{
        struct place place = {};

        open_place(&place);
        test_marks_follow_the_status(&place);
        test_only_root_lists_the_marks(&place);
        test_the_facts_decide(&place);
        test_the_mark_has_the_cause(&place);
        test_the_mark_has_the_problem_of_the_host(&place);
        test_a_start_keeps_marks(&place);
        test_the_mark_has_the_path(&place);
        test_the_mark_has_the_worker(&place);
        test_marks_are_written_again(&place);
        disk_marks_free(place.marks);
        runtime_dir_free(place.dir);
        device_store_free(place.store);
        CHECK_INT(remove_tree(place.path), 0);
        return check_report();
}
