/* SPDX-License-Identifier: MIT */
/* The supervisor of one worker_fake. */
#include "tests/unit/ublkd/workers/worker_watch.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/workers/worker_fake.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_USEC = 60 * 1000 * 1000 };

static void on_change(void *userdata, struct worker_proc *worker)
{
        struct watch *watch = userdata;

        CHECK(watch->in_loop);
        CHECK(worker == watch->worker);
        watch->changes++;
}

bool watch_run_until(struct watch *watch, bool (*done)(const struct watch *watch))
{
        uint64_t start, now;

        sd_event_now(watch->event, CLOCK_MONOTONIC, &start);
        now = start;
        while (!done(watch) && now < start + PATIENCE_USEC) {
                watch->in_loop = true;
                sd_event_run(watch->event, 100 * 1000);
                watch->in_loop = false;
                sd_event_now(watch->event, CLOCK_MONOTONIC, &now);
        }
        return done(watch);
}

bool watch_is_dead(const struct watch *watch)
{
        return worker_proc_death(watch->worker);
}

bool watch_is_open(const struct watch *watch)
{
        return worker_proc_stage(watch->worker) == WORKER_STAGE_OPEN;
}

bool watch_is_ready(const struct watch *watch)
{
        return worker_proc_stage(watch->worker) == WORKER_STAGE_READY;
}

bool watch_is_serving(const struct watch *watch)
{
        return worker_proc_stage(watch->worker) == WORKER_STAGE_SERVING;
}

static int spawn(struct watch *watch, struct worker_start *starter, const char *name, const char *spec,
        struct store_list stores)
{
        return worker_proc_spawn(watch->event, watch->dir, starter,
                &(struct worker_msg){
                        .type = WORKER_MSG_CONFIG,
                        .config = {.name = (char *)name,
                                   .uid = (char *)worker_fake_uid,
                                   .epoch = WORKER_FAKE_EPOCH,
                                   .spec = (char *)spec,
                                   .queues = 1,
                                   .queue_depth = 8,
                                   .stores = stores},
        },
                NULL, NULL, on_change, watch, &watch->worker);
}

int watch_try_spawn(struct watch *watch, struct worker_start *starter, const char *name, const char *spec)
{
        return spawn(watch, starter, name, spec, (struct store_list){});
}

int watch_spawn_listed(struct watch *watch, const char *name, struct store_list stores)
{
        return spawn(watch, watch->starter, name, "{}", stores);
}

void watch_spawn(struct watch *watch, const char *name)
{
        watch->changes = 0;
        CHECK_INT(watch_try_spawn(watch, watch->starter, name, "{}"), 0);
        CHECK_INT(worker_proc_stage(watch->worker), WORKER_STAGE_OPENING);
        CHECK_INT(worker_proc_number(watch->worker), -1);
        CHECK(!worker_proc_params(watch->worker));
        CHECK(!worker_proc_death(watch->worker));
        CHECK(!worker_proc_adopted(watch->worker));
        CHECK(worker_proc_pid(watch->worker) > 0);
}

void watch_listen_and_serve(struct watch *watch, int ready)
{
        int listener = runtime_dir_bind_worker(watch->dir, worker_fake_uid);

        if (listen(listener, 4) < 0 || write(ready, "x", 1) != 1)
                _exit(92);
        worker_fake_serve(listener);
        _exit(0);
}

int watch_adopt(struct watch *watch)
{
        return worker_proc_adopt(watch->event, watch->dir, watch->starter, "good", worker_fake_uid, on_change,
                watch, &watch->worker);
}

void watch_let_go(struct watch *watch)
{
        watch->worker = worker_proc_free(watch->worker);
}

void watch_check_death(struct watch *watch, const char *name, const char *sentence)
{
        watch_spawn(watch, name);
        if (CHECK(watch_run_until(watch, watch_is_dead))) {
                CHECK_STR(worker_proc_death(watch->worker)->sentence, sentence);
                CHECK(worker_proc_died_at(watch->worker) > 0);
                CHECK_INT(worker_proc_stage(watch->worker), WORKER_STAGE_LEAVING);
                CHECK_INT(runtime_dir_connect_worker(watch->dir, worker_fake_uid), -ENOENT);
                CHECK_INT(waitpid(worker_proc_pid(watch->worker), NULL, WNOHANG), -1); /* no zombie */
        }
        watch_let_go(watch);
}

void watch_spawn_live(struct watch *watch, const char *name)
{
        watch_spawn(watch, name);
        CHECK(watch_run_until(watch, watch_is_open));
        CHECK_INT(worker_proc_go(watch->worker, WORKER_FAKE_NUMBER, &watch_copy, NULL), 0);
        CHECK(watch_run_until(watch, watch_is_ready));
        if (worker_proc_stage(watch->worker) == WORKER_STAGE_READY)
                CHECK_INT(worker_proc_live(watch->worker), 0);
}

void watch_check_breach(struct watch *watch, const char *sentence)
{
        if (CHECK(watch_run_until(watch, watch_is_dead))) {
                CHECK_STR(worker_proc_death(watch->worker)->sentence, sentence);
                CHECK_INT(worker_proc_death(watch->worker)->fault, WORKER_FAULT_PROTOCOL);
        }
        watch_let_go(watch);
}

void watch_check_death_of_serving(struct watch *watch, const char *name, const char *sentence)
{
        watch_spawn_live(watch, name);
        watch_check_breach(watch, sentence);
}
