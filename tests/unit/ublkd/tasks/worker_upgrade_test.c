/* SPDX-License-Identifier: MIT */
/* worker_upgrade: one device at a time, none that would notice or is in trouble, and an end at the first failure. The
 * test does what the reconciler would do. */
#include "ublkd/tasks/worker_upgrade.h"

#include "tests/unit/check.h"
#include "tests/unit/put_device.h"
#include "ublkd/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void __wrap_log_record(int level, const struct log_fields *fields, const char *format, ...) _printf_(3, 4);
void __wrap_log_record(
        int level _unused_, const struct log_fields *fields _unused_, const char *format _unused_, ...)
{
}

/* How often the line of the service has to be written again. */
static unsigned line_changes;

void __wrap_service_line_changed(struct service_line *line);
void __wrap_service_line_changed(struct service_line *line _unused_)
{
        line_changes++;
}

struct world {
        sd_event *event;
        struct device_store *store;
        struct host host;
        struct worker_upgrade *upgrade;
};

static const struct device_record *record_of(const struct world *world, const char *name)
{
        return device_store_get(world->store, name);
}

/* Run what is due now. */
static void run_now(struct world *world)
{
        while (sd_event_run(world->event, 0) > 0)
                ;
}

/* What the reconciler may show of a device. */
struct shown {
        enum device_phase phase;
        enum condition_reason reason;
        pid_t pid;
        bool old;                    /* its worker needs a restart */
        bool busy;                   /* the restart that was requested last is not done */
        enum condition_type trouble; /* with `troubled` */
        bool troubled;
        enum condition_reason why; /* NONE: other */
};

static void show(struct world *world, const char *name, const struct shown *shown)
{
        const struct device_record *record = record_of(world, name);
        struct device_status status = {.phase = shown->phase,
                .reason = shown->reason,
                .number = -1,
                .message = (char *)"The message.",
                .converged = shown->phase == PHASE_LIVE && !shown->busy,
                .observed_restart = shown->busy ? record->restart - 1 : record->restart,
                .worker.pid = shown->pid};

        strcpy(status.worker.version, shown->old ? "1" : "2");
        if (shown->old)
                CHECK_INT(device_condition_set(&status.conditions.of[CONDITION_NEEDS_RESTART], CONDITION_TRUE,
                                  REASON_OTHER_VERSION, "Old."),
                        0);
        if (shown->troubled)
                CHECK_INT(device_condition_set(&status.conditions.of[shown->trouble], CONDITION_FALSE,
                                  shown->why ? shown->why : REASON_OTHER, "Bad."),
                        0);
        CHECK_INT(device_store_set_status(world->store, name, &status), 0);
        device_conditions_clear(&status.conditions);
        run_now(world);
}

static void show_old(struct world *world, const char *name)
{
        show(world, name,
                &(const struct shown){.phase = PHASE_LIVE, .reason = REASON_LIVE, .pid = 1, .old = true});
}

static void show_new(struct world *world, const char *name)
{
        show(world, name, &(const struct shown){.phase = PHASE_LIVE, .reason = REASON_LIVE, .pid = 2});
}

static void begin(struct world *world, size_t count)
{
        const struct device_backend *backend;
        void *context;

        *world = (struct world){};
        line_changes = 0;
        CHECK(sd_event_new(&world->event) >= 0);
        CHECK_INT(store_memory_open(&backend, &context), 0);
        CHECK_INT(device_store_new(backend, context, &world->store), 0);
        CHECK_INT(worker_upgrade_new(world->event, world->store, &world->host, NULL, &world->upgrade), 0);
        for (size_t i = 0; i < count; i++) {
                const char name[] = {(char)('a' + i), '\0'};

                CHECK_INT(put_null_disk(world->store, name, ",\"recovery\":{\"onCrash\":\"reissue\"}"), 0);
                show_old(world, name);
        }
}

static void end(struct world *world)
{
        worker_upgrade_free(world->upgrade);
        device_store_free(world->store);
        host_clear(&world->host);
        sd_event_unref(world->event);
}

static void set(struct world *world, bool replace)
{
        worker_upgrade_set(world->upgrade, replace);
        run_now(world);
}

static uint32_t restarts(const struct world *world, const char *name)
{
        return record_of(world, name)->restart;
}

/* Wait until a restart of the device is requested. */
static void wait_restart(struct world *world, const char *name, uint32_t count)
{
        for (int i = 0; i < 200 && restarts(world, name) < count; i++)
                CHECK(sd_event_run(world->event, 50 * 1000) >= 0);
        CHECK_INT((int)restarts(world, name), (int)count);
}

static void check_stopped_at(const struct world *world, const char *name)
{
        if (!CHECK_INT((int)world->host.workers.count, 1) || !CHECK_INT((int)line_changes, 1))
                return;
        CHECK_STR(world->host.workers.items[0].reason, "UpgradeStopped");
        CHECK(strstr(world->host.workers.items[0].detail, name));
}

static void workers_are_kept_unless_asked(void)
{
        struct world world;

        begin(&world, 2);
        CHECK_INT((int)restarts(&world, "a"), 0); /* before the first pass over all devices */
        set(&world, false);
        CHECK_INT((int)restarts(&world, "a"), 0);
        CHECK_INT((int)restarts(&world, "b"), 0);
        end(&world);
}

static void one_follows_the_other(void)
{
        struct world world;

        begin(&world, 3);
        set(&world, true);
        CHECK_INT((int)restarts(&world, "a"), 1);
        show(&world, "a",
                &(const struct shown){.phase = PHASE_LIVE,
                        .reason = REASON_RESTARTING,
                        .pid = 1,
                        .old = true,
                        .busy = true});
        show(&world, "a",
                &(const struct shown){.phase = PHASE_RECOVERING, .reason = REASON_RESTARTING, .busy = true});
        CHECK_INT((int)restarts(&world, "b"), 0);
        show_new(&world, "a");
        CHECK_INT((int)restarts(&world, "b"), 0); /* its worker has to serve for a second */
        wait_restart(&world, "b", 1);
        CHECK_INT((int)restarts(&world, "c"), 0);
        show_new(&world, "b");
        wait_restart(&world, "c", 1);
        show_new(&world, "c");
        run_now(&world);
        CHECK_INT((int)restarts(&world, "a"), 1);
        CHECK_INT((int)restarts(&world, "b"), 1);
        CHECK_INT((int)world.host.workers.count, 0);
        end(&world);
}

static void a_restart_of_a_client_comes_first(void)
{
        struct world world;

        begin(&world, 2);
        show(&world, "b",
                &(const struct shown){.phase = PHASE_RECOVERING, .reason = REASON_RESTARTING, .busy = true});
        set(&world, true);
        CHECK_INT((int)restarts(&world, "a"), 0);
        show_new(&world, "b");
        CHECK_INT((int)restarts(&world, "a"), 1);
        CHECK_INT((int)restarts(&world, "b"), 0);
        end(&world);
}

/* "a" of that spec is shown so; ublkd may replace its worker, or begins with that of "b". */
static void check_first(const char *spec, const struct shown *shown, bool replaced)
{
        struct world world;

        begin(&world, 0);
        CHECK_INT(put_null_disk(world.store, "a", spec), 0);
        show(&world, "a", shown);
        CHECK_INT(put_null_disk(world.store, "b", ",\"recovery\":{\"onCrash\":\"reissue\"}"), 0);
        show_old(&world, "b");
        set(&world, true);
        if (!CHECK_INT((int)restarts(&world, "a"), replaced)
                || !CHECK_INT((int)restarts(&world, "b"), !replaced))
                fprintf(stderr, "in %s, phase %d, condition %d\n", spec, shown->phase,
                        shown->troubled ? (int)shown->trouble : -1);
        end(&world);
}

static void a_disk_whose_openers_would_notice_keeps_its_worker(void)
{
        static const struct shown old = {.phase = PHASE_LIVE, .reason = REASON_LIVE, .pid = 1, .old = true};

        check_first("", &old, true);
        check_first(",\"recovery\":{\"onCrash\":\"fail\"}", &old, false);
        check_first(",\"recovery\":{\"onCrash\":\"none\"}", &old, false);
        check_first(",\"recovery\":{\"onCrash\":\"queue\"}", &old, false); /* this kernel cannot quiesce */
        check_first(",\"enabled\":false", &old, false);
}

static void only_a_disk_that_serves_is_replaced(void)
{
        for (enum device_phase phase = 0; phase < _PHASE_MAX; phase++)
                check_first("", &(const struct shown){.phase = phase, .pid = 1, .old = true},
                        phase == PHASE_LIVE);
}

static void a_disk_in_trouble_keeps_its_worker(void)
{
        static const bool replaced[_CONDITION_MAX] = {
                [CONDITION_ERROR_FREE] = true, /* what has failed is over */
                [CONDITION_RESOURCES] = true,
                [CONDITION_STABLE_PATH] = true,
                [CONDITION_PARTITIONS] = true,
                [CONDITION_SOURCE] = true,
        };

        for (enum condition_type type = 0; type < _CONDITION_MAX; type++)
                if (type != CONDITION_NEEDS_RESTART)
                        check_first("",
                                &(const struct shown){.phase = PHASE_LIVE,
                                        .reason = REASON_LIVE,
                                        .pid = 1,
                                        .old = true,
                                        .troubled = true,
                                        .trouble = type},
                                replaced[type]);
}

/* No write waits for room that is only low. */
static void little_room_keeps_no_worker(void)
{
        struct shown shown = {.phase = PHASE_LIVE,
                .reason = REASON_LIVE,
                .pid = 1,
                .old = true,
                .troubled = true,
                .trouble = CONDITION_SPACE,
                .why = REASON_STORE_LOW};

        check_first("", &shown, true);
        shown.why = REASON_STORE_FULL;
        check_first("", &shown, false);
}

static void a_refusal_stops_it(void)
{
        struct world world;

        begin(&world, 2);
        set(&world, true);
        CHECK_INT((int)restarts(&world, "a"), 1);
        CHECK_INT(device_store_refuse_restart(world.store, "a"), 0);
        run_now(&world);
        CHECK_INT((int)world.host.workers.count, 0); /* until the status has the cause */
        show(&world, "a",
                &(const struct shown){
                        .phase = PHASE_LIVE, .reason = REASON_CANNOT_RESTART, .pid = 1, .old = true});
        check_stopped_at(&world, "a");
        show_old(&world, "b");
        CHECK_INT((int)restarts(&world, "b"), 0);

        /* A reload continues with the other one, and tries again last what was refused. */
        set(&world, true);
        CHECK_INT((int)world.host.workers.count, 0);
        CHECK_INT((int)line_changes, 2);
        CHECK_INT((int)restarts(&world, "a"), 1);
        CHECK_INT((int)restarts(&world, "b"), 1);
        show_new(&world, "b");
        wait_restart(&world, "a", 2);
        CHECK_INT((int)restarts(&world, "b"), 1);
        end(&world);
}

static size_t count_events(const struct world *world, enum condition_reason reason)
{
        const struct event_log *log = device_store_events(world->store);
        size_t count = 0;

        for (size_t i = 0; i < event_log_count(log); i++)
                count += event_log_at(log, i)->reason == reason;
        return count;
}

static void put_file_of_tenant(struct world *world, const char *name)
{
        char text[256];

        snprintf(text, sizeof(text),
                "{\"name\":\"%s\",\"target\":{\"type\":\"loop\",\"path\":\"/home/x/%s\"},\"size\":\"1MiB\","
                "\"recovery\":{\"onCrash\":\"reissue\"}}",
                name, name);
        CHECK_INT(put_device_of(world->store, text, "uid:1000"), 0);
        show_old(world, name);
}

/* "a" and "c" are on files that no worker can open any more, "b" is root's: it is replaced, and each of the others is tried
 * once until a reload. */
static void a_tenant_does_not_stop_it(void)
{
        struct world world;

        begin(&world, 0);
        put_file_of_tenant(&world, "a");
        CHECK_INT(put_null_disk(world.store, "b", ",\"recovery\":{\"onCrash\":\"reissue\"}"), 0);
        show_old(&world, "b");
        put_file_of_tenant(&world, "c");
        set(&world, true);
        CHECK_INT((int)restarts(&world, "a"), 1);
        CHECK_INT(device_store_refuse_restart(world.store, "a"), 0);
        show(&world, "a",
                &(const struct shown){
                        .phase = PHASE_LIVE, .reason = REASON_CANNOT_RESTART, .pid = 1, .old = true});
        CHECK_INT((int)count_events(&world, REASON_UPGRADE_PASSED_OVER), 1);
        CHECK_INT((int)restarts(&world, "b"), 1);
        show_new(&world, "b");
        wait_restart(&world, "c", 1);
        show(&world, "c", &(const struct shown){.phase = PHASE_BACKOFF, .reason = REASON_WORKER_DIED});
        CHECK_INT((int)count_events(&world, REASON_UPGRADE_PASSED_OVER), 2);
        show_old(&world, "c");
        CHECK_INT((int)restarts(&world, "a"), 1);
        CHECK_INT((int)restarts(&world, "c"), 1);
        CHECK_INT((int)world.host.workers.count, 0);
        set(&world, true);
        wait_restart(&world, "c", 2);
        end(&world);
}

/* A client has replaced the workers, so the problem is over. */
static void its_problem_ends_with_the_last_old_worker(void)
{
        struct world world;

        begin(&world, 2);
        set(&world, true);
        show(&world, "a", &(const struct shown){.phase = PHASE_BACKOFF, .reason = REASON_WORKER_DIED});
        show_new(&world, "b");
        check_stopped_at(&world, "a"); /* "a" is not served, and has no worker of another version */
        show_new(&world, "a");
        CHECK_INT((int)world.host.workers.count, 0);
        CHECK_INT((int)line_changes, 2);
        show_old(&world, "b");
        CHECK_INT((int)restarts(&world, "b"), 1);
        end(&world);
}

static void its_problem_stays_while_a_worker_is_old(void)
{
        struct world world;

        begin(&world, 2);
        set(&world, true);
        show(&world, "a", &(const struct shown){.phase = PHASE_BACKOFF, .reason = REASON_WORKER_DIED});
        show_new(&world, "a");
        check_stopped_at(&world, "a");
        CHECK_INT(device_store_remove(world.store, "b"), 0);
        run_now(&world);
        CHECK_INT((int)world.host.workers.count, 0);
        end(&world);
}

static void a_disk_that_is_not_served_again_stops_it(void)
{
        struct world world;

        begin(&world, 2);
        set(&world, true);
        show(&world, "a", &(const struct shown){.phase = PHASE_BACKOFF, .reason = REASON_WORKER_DIED});
        check_stopped_at(&world, "a");
        CHECK_INT((int)restarts(&world, "b"), 0);
        end(&world);
}

static void a_worker_that_ends_at_once_stops_it(void)
{
        struct world world;

        begin(&world, 2);
        set(&world, true);
        show_new(&world, "a");
        show(&world, "a", &(const struct shown){.phase = PHASE_LIVE, .reason = REASON_LIVE, .pid = 3});
        check_stopped_at(&world, "a");
        CHECK_INT((int)restarts(&world, "b"), 0);
        end(&world);
}

/* As with a Worker= that belongs to another ublkd: it must not go round for ever. */
static void a_next_worker_of_the_old_version_stops_it(void)
{
        struct world world;

        begin(&world, 2);
        set(&world, true);
        show(&world, "a",
                &(const struct shown){.phase = PHASE_LIVE, .reason = REASON_LIVE, .pid = 2, .old = true});
        check_stopped_at(&world, "a");
        CHECK_INT((int)restarts(&world, "a"), 1);
        CHECK_INT((int)restarts(&world, "b"), 0);
        end(&world);
}

static void a_client_may_restart_it_too(void)
{
        struct world world;

        begin(&world, 2);
        set(&world, true);
        show_new(&world, "a");
        CHECK_INT(device_store_request_restart(world.store, "a", false), 0);
        run_now(&world);
        show(&world, "a", &(const struct shown){.phase = PHASE_LIVE, .reason = REASON_LIVE, .pid = 3});
        CHECK_INT((int)world.host.workers.count, 0);
        wait_restart(&world, "b", 1);
        end(&world);
}

static void a_disk_that_a_client_removes_ends_its_replacement(void)
{
        struct world world;

        begin(&world, 2);
        set(&world, true);
        CHECK_INT(device_store_request_stop(world.store, "a"), 0);
        run_now(&world);
        CHECK_INT((int)restarts(&world, "b"), 1);
        CHECK_INT(device_store_remove(world.store, "b"), 0);
        run_now(&world);
        CHECK_INT((int)world.host.workers.count, 0);
        end(&world);
}

static void to_keep_ends_it_after_the_disk_under_way(void)
{
        struct world world;

        begin(&world, 2);
        set(&world, true);
        set(&world, false);
        show_new(&world, "a");
        for (int i = 0; i < 30; i++) /* longer than the pause */
                CHECK(sd_event_run(world.event, 50 * 1000) >= 0);
        CHECK_INT((int)restarts(&world, "b"), 0);
        end(&world);
}

int main(void)
{
        workers_are_kept_unless_asked();
        one_follows_the_other();
        a_restart_of_a_client_comes_first();
        a_disk_whose_openers_would_notice_keeps_its_worker();
        only_a_disk_that_serves_is_replaced();
        a_disk_in_trouble_keeps_its_worker();
        little_room_keeps_no_worker();
        a_refusal_stops_it();
        a_tenant_does_not_stop_it();
        its_problem_ends_with_the_last_old_worker();
        its_problem_stays_while_a_worker_is_old();
        a_disk_that_is_not_served_again_stops_it();
        a_worker_that_ends_at_once_stops_it();
        a_next_worker_of_the_old_version_stops_it();
        a_client_may_restart_it_too();
        a_disk_that_a_client_removes_ends_its_replacement();
        to_keep_ends_it_after_the_disk_under_way();
        return check_report();
}
