/* SPDX-License-Identifier: MIT */
/* The store in memory, the directory under /tmp, and the loop that drives them. */
#include "tests/unit/ublkd/reconcile/reconciler_world.h"

#include "ublkd/disks/disk_size.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WAIT_MS_MAX = 20000 };

static void on_boot_pass_done(void *userdata _unused_)
{
}

/* The reconciler has got it before. */
static void on_control_opened(void *userdata _unused_, int result, uint64_t features _unused_,
        struct problem_list *problems _unused_)
{
        CHECK_INT(result, 0);
}

void world_start_reconciler(struct world *world)
{
        const struct reconciler_config config = {.event = world->event,
                .store = world->store,
                .runtime_dir = world->dir,
                .host = &world->host,
                .version = world->version,
                .disk_search = world->disk_search,
                .fd_store = world->fd_store,
                .progress_places = world->progress_places,
                .worker_groups = world->worker_groups,
                .disk_timeout = world->disk_timeout,
                .image_thread = world->image_thread,
                .boot_pass_done = on_boot_pass_done};

        CHECK_INT(reconciler_new(&config, &world->reconciler), 0);
        CHECK_INT(ublk_ctl_open(world->event, &(const struct ublk_ctl_options){.opened = on_control_opened},
                          &world->ctl),
                0);
        ctl_stand_in_greets(world->host.features);
        reconciler_set_control(world->reconciler, world->ctl);
}

void world_stop_reconciler(struct world *world)
{
        world->reconciler = reconciler_free(world->reconciler);
        world->ctl = ublk_ctl_free(world->ctl);
}

void world_restart_with_workers(struct world *world)
{
        world_stop_reconciler(world);
        fake_adopt_error = 0;
        world_start_reconciler(world);
        fake_adopt_error = -ENOENT;
        world_settle(world, 0);
}

static struct {
        sem_t go; /* a search that is to stop waits for it */
        unsigned count;
} *searches; /* shared with their processes */

unsigned world_searches(void)
{
        return searches->count;
}

void world_continue_search(void)
{
        fake_kernel.searches_stop = false;
        CHECK_INT(sem_post(&searches->go), 0);
}

/* Runs in another process, which has a copy of the world. */
static int find_fake_user(
        const struct disk_users_roots *roots _unused_, struct disk_users *disks, size_t count)
{
        searches->count++;
        while (fake_kernel.searches_stop && sem_wait(&searches->go) < 0) {}
        if (!*fake_kernel.user)
                return -EIO;
        for (size_t i = 0; i < count; i++)
                if (fake_disks[disks[i].number].openers)
                        disks[i].items[disks[i].count++] = strdup(fake_kernel.user);
        return 0;
}

static void open_store(struct world *world, bool database)
{
        _cleanup_problems_ struct problem_list problems = {};

        CHECK_INT(database ? store_sqlite_open(
                                     world->path, &world->disk.real, &world->disk.real_context, &problems)
                           : store_memory_open(&world->disk.real, &world->disk.real_context),
                0);
        CHECK_INT(device_store_new(&store_faulty_backend, &world->disk, &world->store), 0);
        fake_workers_begin(world->store);
}

static void begin(struct world *world, bool database)
{
        _cleanup_problems_ struct problem_list problems = {};

        *world = (struct world){
                .host = {.features = WORLD_RECOVERS, .cpus = 1}
        };
        fake_kernel_begin();
        strcpy(world->path, "/tmp/ublkd-reconciler-XXXXXX");
        CHECK(mkdtemp(world->path));
        CHECK_INT(sd_event_new(&world->event), 0);
        if (!searches)
                searches = mmap(
                        NULL, sizeof(*searches), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(searches != MAP_FAILED);
        searches->count = 0;
        CHECK_INT(sem_init(&searches->go, true, 0), 0);
        open_store(world, database);
        CHECK_INT(runtime_dir_open(world->path, &world->dir, &problems), 0);
        CHECK_INT(disk_search_new(world->event, &(struct disk_search_options){.find = find_fake_user},
                          &world->disk_search),
                0);
        world_start_reconciler(world);
}

void world_new(struct world *world)
{
        begin(world, false);
}

void world_new_with_database(struct world *world)
{
        begin(world, true);
}

void world_kill_with_workers(struct world *world)
{
        world_stop_reconciler(world);
        world->disk.write_error = -EIO; /* a killed process writes nothing more */
        device_store_free(world->store);
        world->disk.write_error = 0;
        open_store(world, true);
        fake_adopt_error = 0;
        world_start_reconciler(world);
        fake_adopt_error = -ENOENT;
        world_settle(world, 0);
}

void world_free(struct world *world)
{
        char command[128];

        world_stop_reconciler(world);
        disk_search_free(world->disk_search);
        device_store_free(world->store);
        runtime_dir_free(world->dir);
        sd_event_unref(world->event);
        snprintf(command, sizeof(command), "rm -r %s", world->path);
        CHECK_INT(system(command), 0);
}

static void put(struct world *world, const char *text)
{
        _cleanup_problems_ struct problem_list problems = {};
        const struct put_condition condition = {.mode = PUT_CREATE_OR_REPLACE};
        cJSON *document = cJSON_Parse(text);
        const struct device_record *record;
        enum put_outcome outcome;
        struct device_spec *spec;

        if (CHECK_INT(device_spec_parse(document, NULL, &spec, &problems), 0))
                CHECK_INT(device_store_put(world->store, spec, &condition, &record, &outcome, &problems), 0);
        cJSON_Delete(document);
}

void world_put_loop(struct world *world, const char *name, const char *more)
{
        char text[256];

        snprintf(text, sizeof(text), "{\"name\":\"%s\",\"target\":{\"type\":\"loop\",\"path\":\"/f\"}%s}",
                name, more);
        put(world, text);
}

void world_put_size(struct world *world, const char *name, uint64_t kib, uint64_t offset)
{
        char text[256];

        snprintf(text, sizeof(text),
                "{\"name\":\"%s\",\"target\":{\"type\":\"loop\",\"path\":\"/"
                "f\",\"offset\":%llu},\"size\":\"%lluKiB\"}",
                name, (unsigned long long)offset, (unsigned long long)kib);
        put(world, text);
}

/* Return whether something happened within a millisecond. */
static bool step(struct world *world)
{
        return sd_event_run(world->event, 0) > 0 || fake_ctl_answer() || sd_event_run(world->event, 1000) > 0;
}

void world_settle(struct world *world, unsigned milliseconds)
{
        for (unsigned quiet = 0; quiet <= milliseconds;)
                quiet += !step(world);
}

void world_wait_gone(struct world *world, const char *name)
{
        for (unsigned quiet = 0; quiet < WAIT_MS_MAX && world_record(world, name);)
                quiet += !step(world);
        CHECK(!world_record(world, name));
}

/* REASON_NONE, NULL: any. */
static bool status_has(const struct device_status *status, enum condition_reason reason, const char *value)
{
        return (reason == REASON_NONE || status->reason == reason)
               && (!value || (status->message && strstr(status->message, value)));
}

static void wait_for_status(
        struct world *world, const char *name, enum condition_reason reason, const char *value)
{
        const struct device_record *record;

        for (unsigned quiet = 0; quiet < WAIT_MS_MAX;) {
                record = world_record(world, name);
                if (!record || status_has(&record->status, reason, value))
                        break;
                quiet += !step(world);
        }
        record = world_record(world, name);
        if (CHECK(record) && !CHECK(status_has(&record->status, reason, value)))
                fprintf(stderr, "%s: %s\n", reason_to_string(record->status.reason), record->status.message);
}

void world_wait_reason(struct world *world, const char *name, enum condition_reason reason)
{
        wait_for_status(world, name, reason, NULL);
}

void world_wait_value(struct world *world, const char *name, const char *value)
{
        wait_for_status(world, name, REASON_NONE, value);
}

void world_wait_growth_asked(struct world *world, const char *name)
{
        for (unsigned quiet = 0; quiet < WAIT_MS_MAX && fake_worker(name)->unanswered == 0;)
                quiet += !step(world);
        CHECK(fake_worker(name)->unanswered > 0);
}

const struct device_record *world_record(const struct world *world, const char *name)
{
        return device_store_get(world->store, name);
}

enum device_phase world_phase(const struct world *world, const char *name)
{
        return world_record(world, name)->status.phase;
}

unsigned world_count_events(const struct world *world, enum condition_reason reason)
{
        const struct event_log *log = device_store_events(world->store);
        unsigned count = 0;

        for (size_t i = 0; i < event_log_count(log); i++)
                count += event_log_at(log, i)->reason == reason ? (unsigned)event_log_at(log, i)->count : 0;
        return count;
}

const char *world_last_message(const struct world *world, enum condition_reason reason)
{
        const struct event_log *log = device_store_events(world->store);

        for (size_t i = event_log_count(log); i-- > 0;)
                if (event_log_at(log, i)->reason == reason)
                        return event_log_at(log, i)->message;
        return "";
}

void world_bring_up(struct world *world, const char *name, const char *key)
{
        struct fake_worker *worker;

        world_settle(world, 0);
        worker = fake_worker(name);
        if (!CHECK(worker))
                return;
        fake_worker_open(worker, key);
        world_settle(world, 5);
        worker = fake_worker(name);
        if (!CHECK(worker && worker->number >= 0))
                return;
        fake_worker_ready(worker);
        world_settle(world, 5);
        CHECK_INT(world_phase(world, name), PHASE_LIVE);
}

void world_churn(struct world *world, const char *const *names, size_t count, const char *key)
{
        for (unsigned round = 0; round < 10; round++) {
                for (size_t i = 0; i < count; i++) {
                        struct fake_worker *worker = fake_worker(names[i]);
                        enum worker_stage stage = worker ? fake_worker_stage(worker) : WORKER_STAGE_SERVING;

                        if (stage == WORKER_STAGE_LEAVING)
                                fake_worker_die(worker);
                        else if (stage == WORKER_STAGE_OPENING)
                                fake_worker_open(worker, key);
                        else if (stage == WORKER_STAGE_FETCHING)
                                fake_worker_ready(worker);
                }
                world_settle(world, 20);
        }
}

/* ---- what /sys shows of the disks ---- */

int disk_size_read(const char *sys _unused_, int number, uint64_t *ret_size, uint32_t *ret_logical_block_size)
{
        *ret_size = fake_disks[number].size ? fake_disks[number].size : 1 << 20;
        if (ret_logical_block_size)
                *ret_logical_block_size = 512;
        return 0;
}

struct region_control *world_bring_up_with_region(struct world *world, const char *more)
{
        const struct device_record *record;
        _cleanup_close_ int fd = -1;
        void *base = NULL;

        world_put_loop(world, "data", more);
        record = world_record(world, "data");
        fd = runtime_dir_ensure_region(
                world->dir, record->uid, &(struct device_region_key){.queues = 1, .epoch = record->epoch});
        CHECK(fd >= 0);
        CHECK_INT(device_region_map(fd, 1, &base), 0);
        world_bring_up(world, "data", "file:1");
        CHECK_INT(world_phase(world, "data"), PHASE_LIVE);
        return device_region_control(base);
}
