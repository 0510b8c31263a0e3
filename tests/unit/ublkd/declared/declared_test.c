/* SPDX-License-Identifier: MIT */
/* declared: single passes over files that appear, break, move and go. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/declared/declared_world.h"
#include "ublkd/store/device_change.h"
#include "ublkd/model/device_spec_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct device_record *get(const char *name)
{
        return device_store_get(world.store, name);
}

static void run_until(bool (*condition)(void))
{
        for (int i = 0; i < 1000 && !condition(); i++)
                if (!CHECK(sd_event_run(world.event, 20 * 1000) >= 0))
                        abort();
        CHECK(condition());
}

static bool is_withdrawn(void)
{
        return get("d0")->deleting;
}

static bool is_there(void)
{
        return get("d0") != NULL;
}

static void test_a_disk_that_is_no_longer_in_use_goes(void)
{
        world_make();
        declared_disks_are_known(world.declared);
        file_set(0, 0, IS_GOOD);
        apply();
        show_disks();
        world.used[0] = true;
        file_set(0, 0, IS_ABSENT);
        file_set(0, 1, IS_GOOD); /* the retry does not apply what the administrator did not ask for */
        apply();
        CHECK_INT(get("d0")->source_state, SOURCE_GONE);
        file_set(0, 1, IS_OTHER_SPEC);
        for (int i = 0; i < 20; i++)
                CHECK(sd_event_run(world.event, 1000) >= 0);
        CHECK(!get("d0")->deleting);
        world.used[0] = false;
        run_until(is_withdrawn);
        CHECK(!get("d1")->spec->options.read_only);
        /* Its file comes back during the removal. */
        file_set(0, 0, IS_GOOD);
        apply();
        CHECK(get("d0")->deleting);
        CHECK_INT(device_store_remove(world.store, "d0"), 0);
        run_until(is_there);
        world_free();
}

static bool is_reported(const char *reason)
{
        for (size_t i = 0; i < world.problems.count; i++)
                if (strcmp(world.problems.items[i].reason, reason) == 0)
                        return true;
        return false;
}

static bool is_applied(void)
{
        return world.applied;
}

/* The disk of d0 is in use, and its file goes. */
static void make_one_gone(void)
{
        world_make();
        declared_disks_are_known(world.declared);
        file_set(0, 0, IS_GOOD);
        apply();
        show_disks();
        world.used[0] = true;
        file_set(0, 0, IS_ABSENT);
        world.lost = true;
        file_set(0, 3, IS_GOOD); /* which is refused */
        apply();
        CHECK(is_reported("FileGone") && is_reported("FileRefused"));
}

static void test_a_retry_keeps_the_other_reports(void)
{
        make_one_gone();
        world.applied = false;
        run_until(is_applied);
        CHECK_INT(world.problems.count, 2);
        CHECK(is_reported("FileGone") && is_reported("FileRefused"));
        world.used[0] = false;
        run_until(is_withdrawn);
        CHECK_INT(world.problems.count, 1);
        CHECK(is_reported("FileRefused"));
        world_free();
}

/* The file is back. */
static bool is_seen(void)
{
        const struct device_record *record = get("d0");

        return record->source_state != SOURCE_GONE || !strstr(record->source_trouble, "is gone.");
}

static bool is_applied_again(void)
{
        return get("d0")->source_state == SOURCE_APPLIED;
}

/* Before, the first look at such a file was the last one. */
static void test_a_file_that_comes_back_as_another_is_looked_at_again(void)
{
        static const enum file_is others[] = {IS_OTHER_SPEC, IS_BAD_SPEC, IS_BROKEN};

        for (size_t i = 0; i < 2 * ARRAY_SIZE(others); i++) {
                bool goes = i % 2;

                make_one_gone();
                file_set(0, 3, IS_ABSENT);
                apply();
                file_set(0, 0, others[i / 2]);
                run_until(is_seen);
                world.used[0] = world.lost = false;
                file_set(0, 0, goes ? IS_ABSENT : IS_GOOD);
                run_until(goes ? is_withdrawn : is_applied_again);
                world_free();
        }
}

/* The retry changes no device, but reports what it finds. */
static void test_a_file_that_comes_back_is_not_gone(void)
{
        static const struct {
                enum file_is is;
                enum source_state state; /* the retries go on as long as it is SOURCE_GONE */
                const char *reason;      /* of the problem; NULL: there is none */
        } rows[] = {
                {IS_GOOD,       SOURCE_APPLIED, NULL         },
                {IS_OTHER_SPEC, SOURCE_GONE,    "FileRefused"},
                {IS_BAD_SPEC,   SOURCE_GONE,    "FileInvalid"},
                {IS_BROKEN,     SOURCE_GONE,    "FileInvalid"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                make_one_gone();
                file_set(0, 3, IS_ABSENT);
                apply();
                CHECK(is_reported("FileGone") && !is_reported("FileRefused"));
                file_set(0, 0, rows[i].is);
                run_until(is_seen);
                CHECK_INT(get("d0")->source_state, rows[i].state);
                CHECK(!get("d0")->spec->options.read_only && !get("d0")->deleting);
                CHECK(!is_reported("FileGone"));
                if (rows[i].reason)
                        CHECK(is_reported(rows[i].reason));
                world.used[0] = false;
                world.lost = false;
                apply();
                CHECK_INT(get("d0")->spec->options.read_only, rows[i].is == IS_OTHER_SPEC);
                world_free();
        }
}

/* No process can be started, for it needs file descriptors. */
static void test_a_retry_that_reads_nothing_is_not_the_last(void)
{
        struct rlimit before, none;

        make_one_gone();
        CHECK_INT(getrlimit(RLIMIT_NOFILE, &before), 0);
        none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
        world.applied = false;
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &none), 0);
        run_until(is_applied);
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &before), 0);
        CHECK(is_reported("FileInvalid"));
        world.used[0] = false;
        run_until(is_withdrawn);
        CHECK(!is_reported("FileInvalid"));
        world_free();
}

/* Before the first pass: a device without a disk changes, the other one waits. */
static void test_before_the_disks_are_known(void)
{
        world_make();
        world.early = true;
        for (size_t i = 0; i < 2; i++)
                file_set(0, i, IS_GOOD);
        apply();
        for (size_t i = 0; i < 2; i++)
                CHECK_INT(device_store_assign_number(world.store, i == 0 ? "d0" : "d1", (int)i), 0);
        for (size_t i = 0; i < 2; i++)
                file_set(0, i, IS_OTHER_SPEC);
        apply();
        CHECK(!get("d0")->spec->options.read_only);
        CHECK(get("d1")->spec->options.read_only);
        show_disks();
        world.used[0] = true;
        world.applied = false;
        declared_disks_are_known(world.declared);
        while (!world.applied)
                CHECK(sd_event_run(world.event, 20 * 1000 * 1000) >= 0);
        CHECK(!get("d0")->spec->options.read_only);
        CHECK_INT(get("d0")->source_state, SOURCE_REFUSED);
        world_free();
}

static void test_a_disk_that_can_be_adopted(void)
{
        world_make();
        world.lost = true;
        file_set(0, 3, IS_GOOD);
        apply();
        CHECK(get("d3") == NULL);
        world.lost = false;
        apply();
        CHECK(get("d3") != NULL);
        world_free();
}

/* Write a file of a stripe over two files. */
static void write_stripe(const char *one, const char *other)
{
        char path[160];
        FILE *file;

        file_path(0, 0, path);
        file = fopen(path, "we");
        if (!file)
                abort();
        fprintf(file,
                "{\"name\":\"d0\",\"target\":{\"type\":\"stripe\",\"children\":[{\"type\":\"loop\",\"path\":"
                "\"%s\"},{\"type\":\"loop\",\"path\":\"%s\"}]},\"size\":\"1MiB\"}",
                one, other);
        fclose(file);
        apply();
}

/* A reboot has exchanged the names of two disks, and the file was put right before ublkd has looked whether the device
 * has a disk: with one the bytes would move. */
static void test_an_exchange_of_paths_before_the_disks_are_known(void)
{
        static const struct backing_identity identities[] = {
                {.basis = BACKING_DISK_WWID, .is_disk = true, .lasting = "wwid:a"},
                {.basis = BACKING_DISK_WWID, .is_disk = true, .lasting = "wwid:b"}
        };

        for (int has_disk = 0; has_disk <= 1; has_disk++) {
                const struct device_status unseen = {.phase = PHASE_UNKNOWN, .number = -1},
                                           settled = {.phase = PHASE_FAILED, .number = -1};

                world_make();
                write_stripe("/dev/sda", "/dev/sdb");
                CHECK_INT(device_store_set_listed(world.store, "d0", identities, 2, ""), 0);
                CHECK_INT(device_store_set_status(world.store, "d0", &unseen), 0);
                write_stripe("/dev/sdb", "/dev/sda");
                CHECK_STR(device_spec_store_path(get("d0")->spec, 0), "/dev/sda");
                CHECK(get("d0")->source_state != SOURCE_REFUSED);
                if (has_disk)
                        show_disks();
                else
                        CHECK_INT(device_store_set_status(world.store, "d0", &settled), 0);
                world.applied = false;
                declared_disks_are_known(world.declared);
                while (!world.applied)
                        CHECK(sd_event_run(world.event, 20 * 1000 * 1000) >= 0);
                CHECK_STR(device_spec_store_path(get("d0")->spec, 0), has_disk ? "/dev/sda" : "/dev/sdb");
                CHECK_INT(get("d0")->source_state, has_disk ? SOURCE_REFUSED : SOURCE_APPLIED);
                for (unsigned i = 0; i < 2; i++) /* each place is for its store, wherever it is now */
                        CHECK_STR(device_record_backing(get("d0"), i, NULL)->lasting, identities[i].lasting);
                world_free();
        }
}

static void write_pool(const char *pool, const char *more)
{
        char path[160];
        FILE *file;

        file_path(0, 0, path);
        file = fopen(path, "we");
        if (!file)
                abort();
        fprintf(file, "{\"name\":\"d0\",\"target\":{\"type\":\"loop\",\"pool\":\"%s\"},\"size\":\"1MiB\"%s}",
                pool, more);
        fclose(file);
        apply();
}

/* The path of its image is chosen once; the file does not have it. */
static void test_a_file_that_names_a_pool(void)
{
        struct policy_pool pools[] = {
                {(char *)"fast", (char *)"/srv/fast"},
                {(char *)"slow", (char *)"/srv/slow"},
        };
        _cleanup_free_ char *path = NULL;

        world_make();
        declared_disks_are_known(world.declared);
        write_pool("fast", "");
        CHECK(get("d0") == NULL); /* there is no such pool */
        world.policy = (struct policy){.pools = pools, .pool_count = ARRAY_SIZE(pools)};
        apply();
        if (!CHECK(get("d0") && device_spec_path(get("d0")->spec)))
                return;
        path = strdup(device_spec_path(get("d0")->spec));
        CHECK(strncmp(path, "/srv/fast/d0-", strlen("/srv/fast/d0-")) == 0);
        apply();
        CHECK_INT(get("d0")->generation, 1);
        write_pool("fast", ",\"readOnly\":true");
        CHECK(get("d0")->spec->options.read_only);
        CHECK_STR(device_spec_path(get("d0")->spec), path);
        write_pool("slow", ",\"readOnly\":true");
        CHECK_INT(get("d0")->source_state, SOURCE_REFUSED);
        CHECK_STR(device_spec_pool(get("d0")->spec), "fast");
        world.policy = (struct policy){};
        write_pool("fast", ",\"readOnly\":true");
        CHECK_INT(get("d0")->source_state, SOURCE_APPLIED);
        CHECK_STR(device_spec_path(get("d0")->spec), path);
        world_free();
}

#define FAULT                                                                                                \
        "{\"name\":\"d0\",\"target\":{\"type\":\"fault\",%s\"child\":{\"type\":\"null\"}},\"size\":"         \
        "\"1MiB\"}"

static void write_fault(const char *more)
{
        char path[160];
        FILE *file;

        file_path(0, 0, path);
        file = fopen(path, "we");
        if (!file)
                abort();
        fprintf(file, FAULT, more);
        fclose(file);
        apply();
}

/* As by an ublkd that allowed it. */
static void put_fault(void)
{
        char path[160], text[160];
        const struct put_condition condition = {.mode = PUT_CREATE_OR_REPLACE, .source = path};
        _cleanup_problems_ struct problem_list problems = {};
        const struct device_record *record;
        struct device_spec *spec = NULL;
        enum put_outcome outcome;
        cJSON *document;

        file_path(0, 0, path);
        snprintf(text, sizeof(text), FAULT, "");
        document = cJSON_Parse(text);
        CHECK_INT(device_spec_parse(document, NULL, &spec, &problems), 0);
        cJSON_Delete(document);
        CHECK_INT(device_store_put(world.store, spec, &condition, &record, &outcome, &problems), 0);
}

/* A new device has none; the rules of one that is there can end. */
static void test_a_target_for_tests(void)
{
        world_make();
        declared_disks_are_known(world.declared);
        write_fault("");
        CHECK(get("d0") == NULL);
        file_set(0, 0, IS_GOOD);
        apply();
        write_fault("");
        CHECK_INT(get("d0")->source_state, SOURCE_REFUSED);
        CHECK_INT(target_tree_for_tests(get("d0")->spec->tree), -1);
        put_fault();
        write_fault("\"seed\":7,");
        CHECK_INT(get("d0")->source_state, SOURCE_APPLIED);
        CHECK_INT(get("d0")->generation, 3);
        world_free();
}

/* A bad file that owns no device may be that of a device under another name. */
static void test_a_file_that_is_renamed_and_broken(void)
{
        char path[160], other[160];

        world_make();
        declared_disks_are_known(world.declared);
        file_set(0, 0, IS_GOOD);
        file_set(0, 1, IS_GOOD);
        apply();
        file_set(0, 0, IS_BROKEN);
        file_path(0, 0, path);
        snprintf(other, sizeof(other), "%s/renamed.json", world.dirs[0]);
        CHECK_INT(rename(path, other), 0);
        apply();
        CHECK(!get("d0")->deleting);
        CHECK_INT(get("d0")->source_state, SOURCE_INVALID);
        CHECK_INT(unlink(other), 0);
        file_set(0, 1, IS_BROKEN); /* the spec was merged into it, and a comma is missing */
        apply();
        CHECK(!get("d0")->deleting);
        file_set(0, 1, IS_GOOD);
        apply();
        CHECK(get("d0")->deleting);
        world_free();
}

/* A file system may not be mounted yet. */
static void test_a_start_removes_nothing(void)
{
        world_make();
        declared_disks_are_known(world.declared);
        file_set(0, 0, IS_GOOD);
        apply_as(false);
        CHECK(get("d0") != NULL);
        file_set(0, 0, IS_ABSENT);
        apply_as(false);
        CHECK(!get("d0")->deleting);
        CHECK_INT(get("d0")->source_state, SOURCE_GONE);
        apply();
        CHECK(get("d0")->deleting);
        world_free();
}

/* Its name comes first, but the device is from the other one. */
static void test_a_copy_of_a_file_changes_nothing(void)
{
        char path[160], copy[160];

        world_make();
        declared_disks_are_known(world.declared);
        file_set(0, 0, IS_GOOD);
        apply();
        file_set(0, 0, IS_OTHER_SPEC);
        file_path(0, 0, path);
        snprintf(copy, sizeof(copy), "%s/0-copy.json", world.dirs[0]); /* '-' sorts before '.' */
        CHECK_INT(rename(path, copy), 0);
        file_set(0, 0, IS_GOOD);
        apply();
        CHECK(!get("d0")->spec->options.read_only);
        CHECK_INT(get("d0")->source_state, SOURCE_APPLIED);
        world_free();
}

static void link_to(const char *place)
{
        (void)unlink(world.dirs[0]);
        CHECK_INT(symlink(place, world.dirs[0]), 0);
}

/* What a mount covered is empty: that removes nothing, although it can be read. */
static void test_another_file_system(void)
{
        char other[] = "/dev/shm/declared_test.XXXXXX", here[80];
        struct stat one, two;

        world_make();
        declared_disks_are_known(world.declared);
        if (!mkdtemp(other))
                abort();
        if (stat(other, &one) < 0 || stat(world.root, &two) < 0 || one.st_dev == two.st_dev) {
                fprintf(stderr, "/dev/shm is not another file system: skipped\n");
                world_free();
                CHECK_INT(rmdir(other), 0);
                return;
        }
        snprintf(here, sizeof(here), "%s/here", world.root);
        CHECK_INT(rename(world.dirs[0], here), 0);
        link_to(here);
        file_set(0, 0, IS_GOOD);
        file_set(1, 1, IS_GOOD);
        apply();
        CHECK(get("d0") && get("d1"));
        link_to(other);
        file_set(0, 2, IS_GOOD);
        file_set(1, 1, IS_OTHER_SPEC);
        file_set(1, 3, IS_GOOD);
        apply();
        apply(); /* and it stays so */
        CHECK(!get("d0")->deleting && get("d0")->source_state == SOURCE_INVALID);
        CHECK(get("d2") == NULL && get("d3") == NULL && !get("d1")->spec->options.read_only);
        file_set(0, 2, IS_ABSENT);
        link_to(here);
        apply();
        CHECK(get("d0")->source_state == SOURCE_APPLIED && get("d1")->spec->options.read_only && get("d3"));
        world_free();
        CHECK_INT(rmdir(other), 0);
}

int main(void)
{
        test_a_disk_that_is_no_longer_in_use_goes();
        test_a_retry_keeps_the_other_reports();
        test_a_retry_that_reads_nothing_is_not_the_last();
        test_a_file_that_comes_back_is_not_gone();
        test_a_file_that_comes_back_as_another_is_looked_at_again();
        test_before_the_disks_are_known();
        test_an_exchange_of_paths_before_the_disks_are_known();
        test_a_disk_that_can_be_adopted();
        test_a_file_that_names_a_pool();
        test_a_target_for_tests();
        test_a_file_that_is_renamed_and_broken();
        test_a_start_removes_nothing();
        test_a_copy_of_a_file_changes_nothing();
        test_another_file_system();
        return check_report();
}
