/* SPDX-License-Identifier: MIT */
/* Files, store and disks of the tests of `declared`. */
#include "tests/unit/ublkd/declared/declared_world.h"

#include "tests/unit/check.h"
#include "tests/unit/remove_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct world world;

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
        problem_list_clear(&world.problems);
        CHECK_INT(problem_list_append(&world.problems, problems), 0);
        world.applied = true;
}

static const struct policy *policy_of(void *userdata)
{
        (void)userdata;
        return &world.policy;
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

void file_path(size_t dir, size_t name, char ret[160])
{
        snprintf(ret, 160, "%s%s/%zu.json", world.dirs[dir], world.away[dir] ? ".away" : "", name);
}

void file_set(size_t dir, size_t name, enum file_is is)
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

void dir_move(size_t dir)
{
        char other[80];

        snprintf(other, sizeof(other), "%s.away", world.dirs[dir]);
        CHECK_INT(world.away[dir] ? rename(other, world.dirs[dir]) : rename(world.dirs[dir], other), 0);
        world.away[dir] = !world.away[dir];
}

/* ---- the devices, as a reconciler would have them ---- */

void show_disks(void)
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

void erase_withdrawn(void)
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

void apply_as(bool asked)
{
        world.applied = false;
        declared_apply(world.declared, asked);
        while (!world.applied)
                if (!CHECK(sd_event_run(world.event, 20 * 1000 * 1000) >= 0))
                        abort();
}

void apply(void)
{
        apply_as(true);
}

void dir_set_faulty(size_t dir, bool faulty)
{
        char path[80];

        snprintf(path, sizeof(path), "%s%s", world.dirs[dir], world.away[dir] ? ".away" : "");
        CHECK_INT(chmod(path, faulty ? 0777 : 0755), 0);
        world.faulty[dir] = faulty;
}

void world_make(void)
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
                                  .policy = policy_of,
                                  .disk_exists = disk_exists,
                                  .retry_usec = 1000,
                          },
                          &world.declared),
                0);
}

void world_free(void)
{
        declared_free(world.declared);
        disk_search_free(world.search);
        device_store_free(world.store);
        sd_event_unref(world.event);
        problem_list_clear(&world.problems);
        CHECK_INT(remove_tree(world.root), 0);
}
