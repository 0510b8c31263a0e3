/* SPDX-License-Identifier: MIT */
/* declared: whatever the files become, from a seed, no device is removed whose file cannot be read, or whose disk is
 * in use; and when everything can be read again, the devices are those of the files. */
#include "ublkd/declared/declared.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAMES = 4, DIRS = 2, ROUNDS = 60 };

enum file_is { IS_ABSENT, IS_GOOD, IS_OTHER_SPEC, IS_BROKEN, IS_BAD_SPEC, IS_MASK, IS_WRITABLE, _IS_MAX };

struct world {
        char root[48], dirs[DIRS][64];
        const char *paths[DIRS];
        sd_event *event;
        struct device_store *store;
        struct disk_search *search;
        struct declared *declared;
        bool applied;
        bool doubt;       /* a file is bad, so nothing is removed */
        bool lost;        /* the runtime directory has the record of d3, and the database has not */
        bool early;       /* a disk 0 exists before the first pass */
        bool used[NAMES]; /* the disk of this number */
        enum file_is is[DIRS][NAMES];
        bool away[DIRS];   /* the directory has another name for now */
        bool faulty[DIRS]; /* other users may write to it, so it is not read */
};

static struct world world; /* disk_search calls a function without context */

static int find_users(const struct disk_users_roots *roots, struct disk_users *disks, size_t count)
{
        (void)roots;
        for (size_t i = 0; i < count; i++) {
                if (!world.used[disks[i].number])
                        continue;
                disks[i].items[0] = strdup("mounted at /mnt");
                disks[i].count = 1;
                disks[i].kinds = DISK_USER_PROCESS;
        }
        return 0;
}

static void on_applied(void *userdata, const struct problem_list *problems)
{
        (void)userdata;
        (void)problems;
        world.applied = true;
}

static bool is_adoptable(void *userdata, const char *name)
{
        (void)userdata;
        return strcmp(name, "d3") == 0 && world.lost;
}

static bool disk_exists(void *userdata, int number)
{
        (void)userdata;
        return number == 0 && world.early;
}

/* ---- the files ---- */

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *ftw)
{
        (void)info;
        (void)kind;
        (void)ftw;
        return remove(path);
}

static void file_path(size_t dir, size_t name, char ret[160])
{
        snprintf(ret, 160, "%s%s/%zu.json", world.dirs[dir], world.away[dir] ? ".away" : "", name);
}

static void file_set(size_t dir, size_t name, enum file_is is)
{
        static const char *const labels[_IS_MAX] = {[IS_OTHER_SPEC] = ",\"readOnly\":true"};
        char path[160];
        FILE *file;

        file_path(dir, name, path);
        (void)unlink(path);
        world.is[dir][name] = is;
        if (is == IS_ABSENT)
                return;
        if (is == IS_MASK) {
                CHECK_INT(symlink("/dev/null", path), 0);
                return;
        }
        file = fopen(path, "we");
        if (!file)
                abort();
        if (is == IS_BROKEN)
                fprintf(file, "{\"name\":\"d%zu\",", name);
        else
                fprintf(file, "{\"name\":\"d%zu\",\"target\":{\"type\":\"%s\"},\"size\":\"1MiB\"%s}", name,
                        is == IS_BAD_SPEC ? "parrot" : "null", labels[is] ? labels[is] : "");
        fclose(file);
        CHECK_INT(chmod(path, is == IS_WRITABLE ? 0666 : 0644), 0);
}

static void dir_move(size_t dir)
{
        char other[80];

        snprintf(other, sizeof(other), "%s.away", world.dirs[dir]);
        CHECK_INT(world.away[dir] ? rename(other, world.dirs[dir]) : rename(world.dirs[dir], other), 0);
        world.away[dir] = !world.away[dir];
}

/* ---- the devices, as a reconciler would have them ---- */

static void show_disks(void)
{
        DEVICE_STORE_FOREACH (record, world.store) {
                struct device_status status = {.phase = PHASE_LIVE, .disk = true};
                int number = record->name[1] - '0';

                (void)device_store_assign_number(world.store, record->name, number);
                status.number = number;
                CHECK_INT(device_status_explain(&status, REASON_LIVE, "Live."), 0);
                CHECK_INT(device_store_set_status(world.store, record->name, &status), 0);
                device_status_clear(&status);
        }
}

static void erase_withdrawn(void)
{
        const struct device_record *record = device_store_next(world.store, NULL);
        char name[8];

        while (record) {
                snprintf(name, sizeof(name), "%s", record->name);
                if (record->deleting)
                        CHECK_INT(device_store_remove(world.store, name), 0);
                record = device_store_next(world.store, name);
        }
}

static void apply_as(bool asked)
{
        world.applied = false;
        declared_apply(world.declared, asked);
        while (!world.applied)
                if (!CHECK(sd_event_run(world.event, 20 * 1000 * 1000) >= 0))
                        abort();
}

static void apply(void)
{
        apply_as(true);
}

static bool reads(size_t dir)
{
        return !world.away[dir] && !world.faulty[dir];
}

static bool is_any_faulty(void)
{
        for (size_t dir = 0; dir < DIRS; dir++)
                if (world.faulty[dir] && !world.away[dir])
                        return true;
        return false;
}

static void dir_set_faulty(size_t dir, bool faulty)
{
        char path[80];

        snprintf(path, sizeof(path), "%s%s", world.dirs[dir], world.away[dir] ? ".away" : "");
        CHECK_INT(chmod(path, faulty ? 0777 : 0755), 0);
        world.faulty[dir] = faulty;
}

/* Return the state of the file that counts for the name; IS_ABSENT: none does. */
static enum file_is effective(size_t name)
{
        for (size_t dir = 0; dir < DIRS; dir++)
                if (reads(dir) && world.is[dir][name] != IS_ABSENT)
                        return world.is[dir][name];
        return IS_ABSENT;
}

static bool is_good(enum file_is is)
{
        return is == IS_GOOD || is == IS_OTHER_SPEC;
}

/* Return the directory of the file that owns the device. */
static size_t owner_dir(const char *source)
{
        for (size_t dir = 0; dir < DIRS; dir++)
                if (strncmp(source, world.dirs[dir], strlen(world.dirs[dir])) == 0)
                        return dir;
        abort();
}

/* Check what a pass may not have done to a device that was there before it. */
static void check_device(size_t name, const char *source, bool was_read_only)
{
        char text[8];
        const struct device_record *record;
        enum file_is is = effective(name);
        bool known = !is_any_faulty() && reads(owner_dir(source)) && (is == IS_ABSENT || is == IS_MASK);

        snprintf(text, sizeof(text), "d%zu", name);
        record = device_store_get(world.store, text);
        if (!CHECK(record != NULL))
                return;
        if (world.used[name]) {
                CHECK(!record->deleting);
                CHECK(record->spec->options.read_only == was_read_only); /* that needs a new disk */
        }
        CHECK(!record->deleting || known);
        if (!reads(owner_dir(source)))
                CHECK(!record->deleting && record->spec->options.read_only == was_read_only);
        if (world.faulty[0] && !world.away[0] && owner_dir(source) == 1) /* a file there may replace it */
                CHECK(record->spec->options.read_only == was_read_only);
        if (known && !world.used[name] && !world.doubt)
                CHECK(record->deleting);
        if (known && world.used[name] && !world.doubt)
                CHECK_INT(record->source_state, SOURCE_GONE);
}

static void change_something(void)
{
        switch (rand() % 7) {
        case 2:
                dir_set_faulty((size_t)rand() % DIRS, rand() % 3 == 0);
                break;
        case 0:
                dir_move((size_t)rand() % DIRS);
                break;
        case 1:
                world.used[rand() % NAMES] ^= true;
                break;
        default: {
                size_t dir = (size_t)rand() % DIRS;

                file_set(dir, (size_t)rand() % NAMES, (enum file_is)(rand() % _IS_MAX));
        }
        }
}

static bool has_doubt(void)
{
        for (size_t name = 0; name < NAMES; name++)
                for (size_t dir = 0; dir < DIRS; dir++) {
                        enum file_is is = world.is[dir][name];

                        if (!reads(dir) || is == IS_ABSENT)
                                continue;
                        if (!is_good(is) && is != IS_MASK)
                                return true;
                        break; /* it replaces the others */
                }
        return false;
}

static void one_round(void)
{
        char sources[NAMES][160] = {};
        bool read_only[NAMES] = {}, there[NAMES] = {};

        show_disks();
        for (int i = rand() % 4; i >= 0; i--)
                change_something();
        for (size_t i = 0; i < NAMES; i++) {
                char name[8];
                const struct device_record *record;

                snprintf(name, sizeof(name), "d%zu", i);
                record = device_store_get(world.store, name);
                there[i] = record != NULL;
                if (!record)
                        continue;
                snprintf(sources[i], sizeof(sources[i]), "%s", record->source);
                read_only[i] = record->spec->options.read_only;
        }
        world.doubt = has_doubt();
        apply();
        for (size_t i = 0; i < NAMES; i++)
                if (there[i])
                        check_device(i, sources[i], read_only[i]);
        erase_withdrawn();
}

/* Everything can be read, and no disk is in use. */
static void check_the_end(void)
{
        for (size_t dir = 0; dir < DIRS; dir++) {
                if (world.away[dir])
                        dir_move(dir);
                dir_set_faulty(dir, false);
        }
        memset(world.used, 0, sizeof(world.used));
        for (size_t i = 0; i < NAMES; i++)
                if (effective(i) != IS_ABSENT && !is_good(effective(i)))
                        file_set(0, i, IS_OTHER_SPEC);
        show_disks();
        apply();
        erase_withdrawn();
        apply();
        for (size_t i = 0; i < NAMES; i++) {
                const struct device_record *record;
                char name[8];

                snprintf(name, sizeof(name), "d%zu", i);
                record = device_store_get(world.store, name);
                CHECK((record != NULL) == is_good(effective(i)));
                if (record)
                        CHECK(record->spec->options.read_only == (effective(i) == IS_OTHER_SPEC)
                                && record->source_state == SOURCE_APPLIED);
        }
}

static void world_make(void)
{
        const struct device_backend *backend;
        void *context;

        memset(&world, 0, sizeof(world));
        strcpy(world.root, "/tmp/declared_test.XXXXXX");
        if (!mkdtemp(world.root))
                abort();
        for (size_t i = 0; i < DIRS; i++) {
                snprintf(world.dirs[i], sizeof(world.dirs[i]), "%s/%zu", world.root, i);
                world.paths[i] = world.dirs[i];
                CHECK_INT(mkdir(world.dirs[i], 0755), 0);
        }
        CHECK_INT(sd_event_new(&world.event), 0);
        CHECK_INT(store_memory_open(&backend, &context), 0);
        CHECK_INT(device_store_new(backend, context, &world.store), 0);
        CHECK_INT(disk_search_new(
                          world.event, &(struct disk_search_options){.find = find_users}, &world.search),
                0);
        CHECK_INT(declared_new(
                          &(struct declared_config){
                                  .event = world.event,
                                  .store = world.store,
                                  .dirs = world.paths,
                                  .dir_count = DIRS,
                                  .checks = {.disk_search = world.search},
                                  .applied = on_applied,
                                  .is_adoptable = is_adoptable,
                                  .disk_exists = disk_exists,
                                  .retry_usec = 1000,
                          },
                          &world.declared),
                0);
}

static void world_free(void)
{
        declared_free(world.declared);
        disk_search_free(world.search);
        device_store_free(world.store);
        sd_event_unref(world.event);
        CHECK_INT(nftw(world.root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void test_seed(unsigned seed)
{
        unsigned before = check_failures;

        srand(seed);
        world_make();
        declared_disks_are_known(world.declared);
        for (int i = 0; i < ROUNDS; i++)
                one_round();
        check_the_end();
        world_free();
        if (check_failures > before)
                fprintf(stderr, "  seed %u\n", seed);
}

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

int main(int argc, char *argv[])
{
        if (argc > 1)
                test_seed((unsigned)strtoul(argv[1], NULL, 10));
        else
                for (unsigned seed = 1; seed <= 6; seed++)
                        test_seed(seed);
        test_a_disk_that_is_no_longer_in_use_goes();
        test_before_the_disks_are_known();
        test_a_disk_that_can_be_adopted();
        test_a_file_that_is_renamed_and_broken();
        test_a_start_removes_nothing();
        test_a_copy_of_a_file_changes_nothing();
        test_another_file_system();
        return check_report();
}
