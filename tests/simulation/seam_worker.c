/* SPDX-License-Identifier: MIT */
/* In place of ublkd/workers/worker_proc.h: what ublkd knows of a simulated worker process, and tells it. The
 * rules of which message may come when are those of worker_proc.c. */
#include "sim.h"

#include "ublkd/plan/worker_growth.h"
#include "ublkd/workers/worker_proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
        FIRST_PID = 1000, /* of the first process */
        LEAVE_GRACE_USEC = 5 * 1000 * 1000,
};

struct worker_proc {
        int process; /* index */
        unsigned incarnation;
        bool adopted, greeted, connected, opened;
        enum worker_stage stage, claimed;
        int number;
        uint16_t epoch;
        uint32_t restart;
        struct disk_params params; /* once `opened` */
        struct worker_growth growth;
        struct problem_list problems, refusal, notices;
        struct worker_store store;
        struct worker_death death;
        uint64_t died_at;
        sd_event_source *grace;
        worker_proc_changed changed;
        void *userdata;
};

static struct process *process_of(const struct worker_proc *worker)
{
        return &sim->processes[worker->process];
}

/* ---- what is known ---- */

pid_t worker_proc_pid(const struct worker_proc *worker)
{
        return FIRST_PID + worker->process;
}

bool worker_proc_adopted(const struct worker_proc *worker)
{
        return worker->adopted;
}

enum worker_stage worker_proc_stage(const struct worker_proc *worker)
{
        return worker->stage;
}

uint16_t worker_proc_epoch(const struct worker_proc *worker)
{
        return worker->epoch;
}

uint32_t worker_proc_restart(const struct worker_proc *worker)
{
        return worker->restart;
}

const char *worker_proc_version(const struct worker_proc *worker)
{
        return worker->greeted ? "1" : "";
}

int worker_proc_number(const struct worker_proc *worker)
{
        return worker->number;
}

uint64_t worker_proc_started_at(const struct worker_proc *worker)
{
        return worker->greeted;
}

const struct disk_params *worker_proc_params(const struct worker_proc *worker)
{
        return worker->opened ? &worker->params : NULL;
}

const struct problem_list *worker_proc_problems(const struct worker_proc *worker)
{
        return &worker->problems;
}

/* The simulation has no locks of stores. */
pid_t worker_proc_holder(const struct worker_proc *worker)
{
        (void)worker;
        return 0;
}

const struct worker_store *worker_proc_store(const struct worker_proc *worker)
{
        return worker->store.known ? &worker->store : NULL;
}

int worker_proc_take_store(struct worker_proc *worker)
{
        return TAKE_FD(worker->store.fd);
}

struct problem_list *worker_proc_notices(struct worker_proc *worker)
{
        return &worker->notices;
}

const struct worker_death *worker_proc_death(const struct worker_proc *worker)
{
        return worker->died_at ? &worker->death : NULL;
}

uint64_t worker_proc_died_at(const struct worker_proc *worker)
{
        return worker->died_at;
}

const struct problem_list *worker_proc_refusal(const struct worker_proc *worker)
{
        return &worker->refusal;
}

void worker_proc_forget_refusal(struct worker_proc *worker)
{
        problem_list_clear(&worker->refusal);
}

/* ---- the end ---- */

static void kill_worker(struct worker_proc *worker)
{
        if (worker->died_at || !ublkd_acts(sim))
                return;
        ublkd_count(sim, true);
        worker->stage = WORKER_STAGE_LEAVING;
        process_kill(sim, worker->process, "is killed by ublkd");
        (void)ublkd_dies_here(sim, "having killed a worker");
}

/* One that gets on is let alone; one that has only opened its store may turn out to be of no use. */
static void judge_kill(struct world *world, const struct worker_proc *worker)
{
        const struct plan_facts *facts = &world->ublkd.facts;
        bool wanted =
                facts->want == WANT_PRESENT || facts->want == WANT_EXTENDED || facts->want == WANT_GROWN;

        if (!world->ublkd.decided || process_of(worker)->preflight || !wanted
                || facts->trouble != TROUBLE_NONE || worker->stage == WORKER_STAGE_LEAVING)
                return;
        if (facts->kernel == KERNEL_LIVE && facts->worker == PLAN_WORKER_SERVING)
                world_break(world, "a worker that serves is killed");
        else if (facts->worker == PLAN_WORKER_STARTING
                 || (facts->kernel != KERNEL_ABSENT
                         && (facts->worker == PLAN_WORKER_FETCHING || facts->worker == PLAN_WORKER_READY)))
                world_break(world, "a worker that gets on is killed");
}

void worker_proc_kill(struct worker_proc *worker)
{
        if (!worker->died_at && ublkd_acts(sim))
                judge_kill(sim, worker);
        kill_worker(worker);
}

void worker_proc_refuse(struct worker_proc *worker, const char *fault)
{
        TRACE(sim, "ublkd: refuses worker %d: %s", worker->process, fault);
        kill_worker(worker);
}

static int on_grace_over(sd_event_source *source, uint64_t usec, void *userdata)
{
        (void)source, (void)usec;
        worker_proc_kill(userdata);
        return 0;
}

static void expect_to_leave(struct worker_proc *worker)
{
        worker->stage = WORKER_STAGE_LEAVING;
        if (!worker->grace)
                (void)sd_event_add_time_relative(
                        NULL, &worker->grace, CLOCK_MONOTONIC, LEAVE_GRACE_USEC, 0, on_grace_over, worker);
}

struct worker_proc *worker_proc_free(struct worker_proc *worker)
{
        struct process *process;

        if (!worker)
                return NULL;
        process = process_of(worker);
        if (process->proc == worker)
                process->proc = NULL;
        if (ublkd_acts(sim) && process->alive && process->connection == worker->incarnation)
                process_send(sim, worker->process, MESSAGE_EOF, 0, worker->incarnation);
        sd_event_source_disable_unref(worker->grace);
        backing_claims_clear(&worker->params.claims);
        problem_list_clear(&worker->problems);
        problem_list_clear(&worker->refusal);
        problem_list_clear(&worker->notices);
        descriptor_close(sim, worker->store.fd);
        free(worker);
        return NULL;
}

void seam_worker_dies(struct world *world, int index)
{
        struct worker_proc *worker = world->processes[index].proc;

        if (!ublkd_acts(world) || !worker)
                return;
        TRACE(world, "ublkd: worker %d is dead", index);
        worker->died_at = world->now;
        worker->stage = WORKER_STAGE_LEAVING;
        worker->connected = false;
        worker->grace = sd_event_source_disable_unref(worker->grace);
        worker->death = (struct worker_death){.by_signal = true, .code = 9};
        snprintf(worker->death.sentence, sizeof(worker->death.sentence), "was killed by SIGKILL");
        if (world->socket_owner == index)
                world->socket_owner = NO_PROCESS;
        worker->changed(worker->userdata, worker);
}

/* ---- what it says ---- */

static void raise_stage(struct worker_proc *worker, enum worker_stage stage)
{
        if (stage > worker->stage)
                worker->stage = stage;
}

static enum worker_stage told_stage(enum process_stage stage)
{
        static const enum worker_stage stages[_PROCESS_STAGE_MAX] = {
                [PROCESS_BOOTING] = WORKER_STAGE_OPENING,
                [PROCESS_OPENING] = WORKER_STAGE_OPENING,
                [PROCESS_OPEN] = WORKER_STAGE_OPEN,
                [PROCESS_ATTACHING] = WORKER_STAGE_FETCHING,
                [PROCESS_FETCHING] = WORKER_STAGE_FETCHING,
                [PROCESS_READY] = WORKER_STAGE_READY,
                [PROCESS_SERVING] = WORKER_STAGE_SERVING,
                [PROCESS_LEAVING] = WORKER_STAGE_LEAVING,
        };

        return stages[stage];
}

static void on_hello(struct worker_proc *worker, enum worker_stage stage, unsigned value)
{
        const struct process *process = process_of(worker);

        worker->greeted = true;
        worker->number = (int)value - 1;
        worker->claimed = stage;
        if (worker->adopted) {
                worker->epoch = (uint16_t)process->epoch;
                worker->restart = process->restart;
        }
        if (stage == WORKER_STAGE_LEAVING)
                worker->stage = WORKER_STAGE_LEAVING;
}

/* BACKING. One that serves what it was given says so only to a ublkd that has found it. */
static void on_backing(struct worker_proc *worker, bool refused)
{
        const struct process *process = process_of(worker);

        if (worker->store.known || (process->given != NO_STORE && !worker->adopted))
                return;
        worker->store = (struct worker_store){
                .known = true,
                .major = 8,
                .minor = 1,
                .inode = 100 + (uint64_t)process->store,
                .fd = refused ? -1 : descriptor_open(sim, process->store),
        };
        store_identity_of(sim, process->known_as, &worker->store.identity);
}

static void on_params(struct worker_proc *worker, unsigned size)
{
        const struct process *process = process_of(worker);
        char key[32];

        if (worker->opened)
                return;
        on_backing(worker, false);
        snprintf(key, sizeof(key), "file:8:1:%d", 100 + process->store);
        worker->opened = true;
        worker->params = (struct disk_params){
                .size = size * MIB,
                .size_max = UINT64_MAX,
                .logical_block_size = 512,
                .physical_block_size = 512,
                .max_io_size = 1 << 20,
                .queues = 1,
                .queue_depth = 16,
        };
        (void)backing_claims_add(&worker->params.claims,
                &(const struct backing_claim){.key = key, .end = size * MIB, .writes = true});
        raise_stage(worker, WORKER_STAGE_OPEN);
        raise_stage(worker, worker->claimed);
}

static void on_failed(struct worker_proc *worker, enum refusal refusal)
{
        static const struct {
                int error;
                const char *reason, *detail;
        } refusals[_REFUSAL_MAX] = {
                [REFUSAL_BROKEN] = {EIO,    "BackingUnreadable",  "The backing store cannot be read."    },
                [REFUSAL_GONE] = {ENOENT, "BackingFileMissing", "There is no such file."               },
                [REFUSAL_CHANGED] = {ESTALE, "BackingChanged",     "The store at the path is another one."},
        };

        if (refusal == REFUSAL_CHANGED)
                on_backing(worker, true);
        (void)problem_add(&worker->problems, refusals[refusal].error, "/target/path",
                refusals[refusal].reason, "%s", refusals[refusal].detail);
        expect_to_leave(worker);
}

static void on_grown(struct worker_proc *worker, unsigned size, bool refused)
{
        const struct worker_msg msg = {
                .type = WORKER_MSG_GROWN, .grown = {.size = size * MIB, .size_max = UINT64_MAX}
        };

        if (worker_growth_answer(&worker->growth, worker_proc_params(worker), &msg)) {
                world_break(sim, "a worker that tells the truth is not believed");
                return;
        }
        worker->params.size = msg.grown.size;
        backing_claims_resize(&worker->params.claims, worker->params.size);
        if (worker->growth.asked > 0)
                return;
        problem_list_clear(&worker->refusal);
        if (refused)
                (void)problem_add(&worker->refusal, ENOSPC, "/size", "BackingTooSmall", "There is no room.");
}

static void handle_message(
        struct worker_proc *worker, enum message message, enum worker_stage stage, unsigned value)
{
        switch (message) {
        case MESSAGE_HELLO:
                on_hello(worker, stage, value);
                break;
        case MESSAGE_PARAMS:
                on_params(worker, value);
                break;
        case MESSAGE_READY:
                if (worker->stage < WORKER_STAGE_FETCHING)
                        world_break(sim, "a worker is ready before GO");
                raise_stage(worker, WORKER_STAGE_READY);
                break;
        case MESSAGE_FAILED:
                on_failed(worker, (enum refusal)value);
                break;
        case MESSAGE_GROWN:
        case MESSAGE_REFUSED:
                on_grown(worker, value, message == MESSAGE_REFUSED);
                break;
        default: /* it has closed its end */
                worker->connected = false;
                if (worker->stage != WORKER_STAGE_SERVING)
                        expect_to_leave(worker);
        }
}

void seam_worker_hears(
        struct world *world, int index, enum message message, enum process_stage stage, unsigned value)
{
        struct worker_proc *worker = world->processes[index].proc;
        enum worker_stage before;
        bool was_greeted;

        if (!ublkd_acts(world) || !worker || worker->died_at || !worker->connected)
                return;
        before = worker->stage;
        was_greeted = worker->greeted;
        handle_message(worker, message, told_stage(stage), value);
        TRACE(world, "ublkd: hears %d of worker %d, which is %s", message, index,
                worker_stage_to_string(worker->stage));
        if (worker->stage != before || ((worker->adopted || was_greeted) && message != MESSAGE_GONE))
                worker->changed(worker->userdata, worker);
}

/* ---- orders ---- */

static int tell(struct worker_proc *worker, enum message message, unsigned value, enum worker_stage stage)
{
        struct world *world = sim;

        if (!ublkd_acts(world))
                return -EPIPE;
        ublkd_count(world, true);
        if (!worker->connected)
                return -EPIPE;
        if (world_bad_luck(world) || (world->full_sockets && !world->calm && world_chance(world, 300)))
                return -EAGAIN;
        process_send(world, worker->process, message, value, worker->incarnation);
        raise_stage(worker, stage);
        (void)ublkd_dies_here(world, "having told a worker something");
        return 0;
}

/* The worker that takes the queues has opened the store in the device's record. */
static void judge_go(struct world *world, const struct worker_proc *worker)
{
        const struct process *process = process_of(worker);
        const struct database *database = &world->database;

        if (!database->exists || process->preflight)
                world_break(world, "a worker goes that has no device");
        else if (!worker->opened)
                world_break(world, "a worker goes that has not opened its store");
        else if (database->record.number < 0)
                world_break(world, "a worker goes for no number");
        else if (database->record.epoch == process->epoch /* else what it serves goes before it is used */
                 && store_of_token(database->record.backing.lasting) != process->store
                 && world->disks[database->record.number].store != process->store)
                world_break(world, "a worker gets a store that is not the recorded one");
}

int worker_proc_go(
        struct worker_proc *worker, int number, const struct data_route *route, const char *queue_cpus)
{
        int r;

        (void)route, (void)queue_cpus;
        if (ublkd_acts(sim))
                judge_go(sim, worker);
        r = tell(worker, MESSAGE_GO, (unsigned)number, WORKER_STAGE_FETCHING);
        if (r >= 0)
                worker->number = number;
        return r;
}

int worker_proc_live(struct worker_proc *worker)
{
        if (ublkd_acts(sim) && sim->ublkd.seen.state != DISK_LIVE)
                world_break(sim, "a worker gets LIVE while its disk is not live");
        return tell(worker, MESSAGE_LIVE, 0, WORKER_STAGE_SERVING);
}

int worker_proc_grow(struct worker_proc *worker, uint64_t size)
{
        struct worker_growth growth = worker->growth;
        int r;

        if (ublkd_acts(sim) && worker->stage != WORKER_STAGE_SERVING)
                world_break(sim, "a worker that does not serve gets GROW");
        if (!worker->opened)
                return -EOPNOTSUPP;
        r = worker_growth_ask(&growth, &worker->params, size);
        if (r >= 0)
                r = tell(worker, MESSAGE_GROW, (unsigned)(size / MIB), worker->stage);
        if (r >= 0)
                worker->growth = growth;
        return r;
}

/* ---- the beginning ---- */

static int new_worker(int index, worker_proc_changed changed, void *userdata, struct worker_proc **ret)
{
        struct worker_proc *worker = calloc(1, sizeof(*worker));

        if (!worker)
                return -ENOMEM;
        *worker = (struct worker_proc){
                .process = index,
                .incarnation = sim->ublkd.incarnation,
                .connected = true,
                .number = -1,
                .store = {.fd = -1},
                .changed = changed,
                .userdata = userdata,
        };
        sim->processes[index].proc = worker;
        *ret = worker;
        return 0;
}

static void judge_spawn(struct world *world, bool preflight)
{
        const struct device_record *record = ublkd_record(world);

        for (int i = 0; i < world->process_count; i++)
                if (world->processes[i].alive && world->processes[i].connection == world->ublkd.incarnation
                        && world->processes[i].preflight == preflight)
                        world_break(world, "a second worker is started beside one that listens to us");
        if (!preflight && record && record->spec && record->spec->options.recovery.trigger == TRIGGER_MANUAL
                && !record->recover_requested
                && (ublkd_is_held(record) || world->ublkd.facts.kernel == KERNEL_DOWN))
                world_break(world, "a manual device is recovered unasked");
}

/* MiB. That of a disk that is there is in the spec which the worker gets. */
static unsigned size_in(const char *spec)
{
        cJSON *document = cJSON_Parse(spec);
        const cJSON *size = cJSON_GetObjectItemCaseSensitive(document, "size");
        const struct device_record *record = ublkd_record(sim);
        uint64_t bytes = cJSON_IsNumber(size)     ? (uint64_t)size->valuedouble
                         : record && record->spec ? record->spec->options.size
                                                  : 0;

        cJSON_Delete(document);
        return (unsigned)(bytes / MIB);
}

int worker_proc_spawn(sd_event *event, struct runtime_dir *dir, struct worker_start *starter,
        const struct worker_msg *config, int store, worker_proc_changed changed, void *userdata,
        struct worker_proc **ret)
{
        struct world *world = sim;
        struct process process = {
                .alive = true,
                .preflight = config->config.lock == WORKER_LOCK_NEVER,
                .epoch = config->config.epoch,
                .restart = config->config.restart,
                .connection = world->ublkd.incarnation,
                .number = NO_PROCESS,
                .given = descriptor_store(world, store),
                .expected = store_of_token(config->config.expected_lasting),
                .store = NO_STORE,
                .known_as = NO_STORE,
        };
        int index, r;

        (void)event, (void)dir, (void)starter;
        if (!ublkd_acts(world))
                return -EPIPE;
        ublkd_count(world, true);
        judge_spawn(world, process.preflight);
        if (world_bad_luck(world))
                return -EAGAIN;
        if (store >= 0 && process.given == NO_STORE)
                world_break(world, "a worker is given a descriptor that is not open");
        process.size = size_in(config->config.spec);
        snprintf(process.uid, sizeof(process.uid), "%s", config->config.uid);
        index = process_spawn(world, &process);
        if (index == NO_PROCESS)
                return -EAGAIN;
        TRACE(world, "ublkd: starts worker %d%s", index, process.preflight ? ", preflight" : "");
        r = new_worker(index, changed, userdata, ret);
        if (r < 0)
                return r;
        (*ret)->epoch = config->config.epoch;
        (*ret)->restart = config->config.restart;
        (void)ublkd_dies_here(world, "having started a worker");
        return 0;
}

int worker_proc_adopt(sd_event *event, struct runtime_dir *dir, struct worker_start *starter,
        const char *name, const char *uid, worker_proc_changed changed, void *userdata,
        struct worker_proc **ret)
{
        struct world *world = sim;
        int index = world->socket_owner, r;

        (void)event, (void)dir, (void)starter, (void)name;
        if (!ublkd_acts(world))
                return -EPIPE;
        if (index == NO_PROCESS || !world->processes[index].alive || !world->processes[index].listens
                || strcmp(world->processes[index].uid, uid) != 0)
                return -ENOENT;
        if (world_bad_luck(world))
                return -EAGAIN; /* alive, but does not accept connections */
        TRACE(world, "ublkd: adopts worker %d", index);
        r = new_worker(index, changed, userdata, ret);
        if (r < 0)
                return r;
        (*ret)->adopted = true;
        process_send(world, index, MESSAGE_CONNECT, 0, world->ublkd.incarnation);
        return 0;
}
