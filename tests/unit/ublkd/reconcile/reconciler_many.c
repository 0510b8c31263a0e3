/* SPDX-License-Identifier: MIT */
/* A world with many live devices. */
#include "tests/unit/ublkd/reconcile/reconciler_many.h"

#include "tests/unit/check.h"
#include "ublkd/base/log.h"
#include "ublkd/reconcile/reconciler_events.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 100, NAME_SIZE = 32, OTHER_PID = 1 };

static unsigned failing; /* the device that a refusal has left; 0: none */

const char *many_operation_to_string(enum many_operation operation)
{
        static const char *const words[_MANY_MAX] = {
                [MANY_STORE_EVENT] = "store-event",
                [MANY_EVENT] = "event",
                [MANY_UEVENT] = "uevent",
                [MANY_TURN] = "turn",
                [MANY_PAGE] = "page",
                [MANY_ADD] = "add",
                [MANY_REMOVE] = "remove",
                [MANY_LOST] = "lost",
                [MANY_LOCKED] = "locked",
                [MANY_KEPT] = "kept",
        };

        return words[operation];
}

static const char *name_of(unsigned i, char name[static NAME_SIZE])
{
        snprintf(name, NAME_SIZE, "device-%05u", i);
        return name;
}

/* Ten thousand regions take long to make, and no operation here reads one. */
int __wrap_runtime_dir_ensure_region(
        struct runtime_dir *dir, const char *uid, const struct device_region_key *key);
int __wrap_runtime_dir_ensure_region(struct runtime_dir *dir _unused_, const char *uid _unused_,
        const struct device_region_key *key _unused_)
{
        return STAND_IN_NOTHING;
}

int __wrap_runtime_dir_ensure_kept(struct runtime_dir *dir, const char *uid,
        const struct device_region_key *key, const struct region_kept_wish *wish);
int __wrap_runtime_dir_ensure_kept(struct runtime_dir *dir _unused_, const char *uid _unused_,
        const struct device_region_key *key _unused_, const struct region_kept_wish *wish _unused_)
{
        return STAND_IN_NOTHING;
}

/* Another device each round, all over the range. */
static unsigned device_of(unsigned count, unsigned round)
{
        return (round * 7919 + count / 2) % count;
}

static void put(struct world *world, unsigned i)
{
        char name[NAME_SIZE];

        world_put_loop(world, name_of(i, name), "");
}

static void run_loop(struct world *world)
{
        while (sd_event_run(world->event, 0) > 0 || fake_ctl_answer()) {}
}

static void open_worker(struct fake_worker *worker, unsigned i)
{
        char key[NAME_SIZE];

        snprintf(key, sizeof(key), "file:8:1:%u", i);
        fake_worker_open(worker, key);
}

/* Its store is a block device: of each there is one, and other devices may have parts of it. */
static void give_disk(struct fake_worker *worker)
{
        fake_worker_disk(worker, "wwid:a", memfd_create("disk", MFD_CLOEXEC), true);
}

static void refuse_disk(struct fake_worker *worker)
{
        give_disk(worker);
        worker->store.fd = close_fd(worker->store.fd);
}

static bool worker_is_there(const struct world *world _unused_, const char *name)
{
        const struct fake_worker *newest = TAILQ_LAST(&fake_workers, fake_workers);

        return newest && !newest->dead && strcmp(newest->name, name) == 0;
}

static bool worker_has_a_number(const struct world *world _unused_, const char *name _unused_)
{
        return TAILQ_LAST(&fake_workers, fake_workers)->number >= 0;
}

static bool is_refused(const struct world *world, const char *name)
{
        const struct event_log *log = device_store_events(world->store);
        const struct device_event *newest = event_log_at(log, event_log_count(log) - 1);

        return newest->reason == REASON_BACKING_IN_USE && strcmp(newest->device, name) == 0;
}

static bool is_live(const struct world *world, const char *name)
{
        return world_phase(world, name) == PHASE_LIVE;
}

static bool is_tried(const struct world *world, const char *name)
{
        const struct device_record *record = world_record(world, name);

        return record->status.observed_asked == record->asked;
}

static bool is_gone(const struct world *world, const char *name)
{
        return !world_record(world, name);
}

/* Other devices may be due as well: many_settle() runs them. */
static void run_until(
        struct world *world, bool (*done)(const struct world *world, const char *name), const char *name)
{
        while (!done(world, name) && (sd_event_run(world->event, 0) > 0 || fake_ctl_answer())) {}
        CHECK(done(world, name));
}

static void add(struct world *world, unsigned i, bool on_disk)
{
        char name[NAME_SIZE];

        put(world, i);
        run_until(world, worker_is_there, name_of(i, name));
        if (on_disk)
                give_disk(TAILQ_LAST(&fake_workers, fake_workers));
        open_worker(TAILQ_LAST(&fake_workers, fake_workers), i);
        run_until(world, worker_has_a_number, name);
        fake_worker_ready(TAILQ_LAST(&fake_workers, fake_workers));
        run_until(world, is_live, name);
}

/* One after the other: ublkd kills a worker that does not report in time. */
void many_begin(struct world *world, unsigned count)
{
        char name[NAME_SIZE];

        log_set_level(LOG_ERR);
        world_new(world);
        for (unsigned i = 0; i < count; i++) {
                add(world, i, false);
                run_loop(world);
                CHECK_INT(world_phase(world, name_of(i, name)), PHASE_LIVE);
        }
}

static void remove_one(struct world *world, unsigned i)
{
        char name[NAME_SIZE];

        CHECK_INT(device_store_request_delete(world->store, name_of(i, name), false), 0);
        run_until(world, is_gone, name);
}

static void refuse(struct world *world, unsigned i, pid_t holder)
{
        char name[NAME_SIZE];

        fake_worker_find_locked(
                TAILQ_LAST(&fake_workers, fake_workers), holder, "The block device is in use.");
        run_until(world, is_refused, name_of(i, name));
}

static void recover(struct world *world, unsigned i)
{
        char name[NAME_SIZE];

        fake_worker_die(TAILQ_LAST(&fake_workers, fake_workers));
        run_until(world, worker_is_there, name_of(i, name));
        open_worker(TAILQ_LAST(&fake_workers, fake_workers), i);
        run_until(world, worker_has_a_number, name);
        fake_worker_ready(TAILQ_LAST(&fake_workers, fake_workers));
        run_until(world, is_live, name);
}

/* In the order of handle_device_list(). */
static void page(const struct world *world, const char *after)
{
        const struct device_record *record = device_store_next(world->store, after);

        for (unsigned i = 1; record && i < PAGE; i++)
                record = device_store_after(record);
}

void many_prepare(struct world *world, enum many_operation operation, unsigned count, unsigned round)
{
        char name[NAME_SIZE];

        (void)name_of(device_of(count, round), name);
        if (operation == MANY_TURN)
                CHECK_INT(device_store_try_again(world->store, name), 0);
        if (operation == MANY_REMOVE || operation == MANY_LOST) {
                add(world, count + round, operation == MANY_REMOVE);
                run_loop(world);
        }
        if (operation == MANY_LOCKED || operation == MANY_KEPT) {
                failing = count + round;
                put(world, failing);
                run_until(world, worker_is_there, name_of(failing, name));
                refuse_disk(TAILQ_LAST(&fake_workers, fake_workers));
        }
}

void many_measured(struct world *world, enum many_operation operation, unsigned count, unsigned round)
{
        char name[NAME_SIZE];

        (void)name_of(device_of(count, round), name);
        if (operation == MANY_STORE_EVENT)
                (void)device_store_try_again(world->store, name);
        else if (operation == MANY_EVENT)
                (void)device_store_note(
                        world->store, name, EVENT_NORMAL, REASON_WORKER_DIED, "Round %u.", round);
        else if (operation == MANY_UEVENT)
                reconciler_disk_changed(world->reconciler, (int)device_of(count, round));
        else if (operation == MANY_TURN)
                run_until(world, is_tried, name);
        else if (operation == MANY_PAGE)
                page(world, name_of((count - PAGE) / 2, name));
        else if (operation == MANY_ADD)
                add(world, count + round, true);
        else if (operation == MANY_REMOVE)
                remove_one(world, count + round);
        else if (operation == MANY_LOST)
                recover(world, count + round);
        else if (operation == MANY_LOCKED)
                refuse(world, count + round, OTHER_PID);
        else if (operation == MANY_KEPT)
                refuse(world, count + round, getpid());
}

static bool is_gone_or_tries(const struct world *world, const char *name)
{
        return !world_record(world, name) || worker_is_there(world, name);
}

void many_settle(struct world *world)
{
        char name[NAME_SIZE];

        run_loop(world);
        if (failing == 0)
                return;
        CHECK_INT(device_store_request_delete(world->store, name_of(failing, name), false), 0);
        run_until(world, is_gone_or_tries, name);
        if (world_record(world, name)) { /* ublkd has killed the worker of another try */
                fake_worker_die(TAILQ_LAST(&fake_workers, fake_workers));
                run_until(world, is_gone, name);
        }
        failing = 0;
        run_loop(world);
}
