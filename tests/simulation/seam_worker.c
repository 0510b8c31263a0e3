/* SPDX-License-Identifier: MIT */
/* What ublkd's worker_proc.c asks of a simulated worker process and learns of it, and the rules of what ublkd may
 * ask. */
#include "sim.h"

#include "ublkd/workers/worker_proc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

struct worker_stand_in *worker_stand_in_at(int index)
{
        return &sim->processes[index].stand_in;
}

pid_t worker_stand_in_pid(int index)
{
        return FIRST_PID + index;
}

static const struct process *process_of(const struct worker_proc *worker)
{
        return &sim->processes[worker_proc_pid(worker) - FIRST_PID];
}

/* ---- the end ---- */

/* One that gets on is let alone; one that has only opened its store may turn out to be of no use. */
static void judge_kill(struct world *world, const struct worker_proc *worker)
{
        const struct plan_facts *facts = &world->ublkd.facts;
        bool wanted =
                facts->want == WANT_PRESENT || facts->want == WANT_EXTENDED || facts->want == WANT_GROWN;

        if (!world->ublkd.decided || process_of(worker)->preflight || !wanted
                || facts->trouble != TROUBLE_NONE || worker_proc_stage(worker) == WORKER_STAGE_LEAVING)
                return;
        if (facts->kernel == KERNEL_LIVE && facts->worker == PLAN_WORKER_SERVING)
                world_break(world, "a worker that serves is killed");
        else if (facts->worker == PLAN_WORKER_STARTING
                 || (facts->kernel != KERNEL_ABSENT
                         && (facts->worker == PLAN_WORKER_FETCHING || facts->worker == PLAN_WORKER_READY)))
                world_break(world, "a worker that gets on is killed");
}

static bool kill_is_decided; /* by the reconciler, not by worker_proc.c alone */

void __real_worker_proc_kill(struct worker_proc *worker);
void __wrap_worker_proc_kill(struct worker_proc *worker);
void __wrap_worker_proc_kill(struct worker_proc *worker)
{
        if (!worker_proc_died_at(worker) && ublkd_acts(sim))
                judge_kill(sim, worker);
        kill_is_decided = true;
        __real_worker_proc_kill(worker);
        kill_is_decided = false;
}

void __real_worker_proc_refuse(struct worker_proc *worker, const char *fault);
void __wrap_worker_proc_refuse(struct worker_proc *worker, const char *fault);
void __wrap_worker_proc_refuse(struct worker_proc *worker, const char *fault)
{
        TRACE(sim, "ublkd: refuses worker %d: %s", worker_proc_pid(worker) - FIRST_PID, fault);
        if (worker_proc_is_unreachable(worker) && !process_of(worker)->deaf)
                world_break(sim, "a worker that has not closed its socket is killed for that");
        kill_is_decided = true;
        __real_worker_proc_refuse(worker, fault);
        kill_is_decided = false;
}

void on_worker_killed(int index)
{
        struct world *world = sim;

        if (!ublkd_acts(world))
                return;
        if (world->speaks && !kill_is_decided)
                world_break(world, "a worker that keeps the protocol is killed for what it says");
        ublkd_count(world, true);
        process_kill(world, index, "is killed by ublkd");
        (void)ublkd_dies_here(world, "having killed a worker");
}

void on_worker_closed(int index)
{
        const struct process *process = &sim->processes[index];

        if (ublkd_acts(sim) && process->alive && process->connection == sim->ublkd.incarnation)
                process_send(sim, index, MESSAGE_EOF, 0, process->connection);
}

void on_worker_freed(int index)
{
        (void)index;
}

bool on_worker_waited(int index, siginfo_t *ret)
{
        (void)index;
        ret->si_code = CLD_KILLED;
        ret->si_status = SIGKILL;
        return true;
}

bool on_worker_exiting(pid_t pid)
{
        return !sim->processes[pid - FIRST_PID].alive;
}

void seam_worker_dies(struct world *world, int index)
{
        if (!ublkd_acts(world) || !world->processes[index].stand_in.proc)
                return;
        TRACE(world, "ublkd: worker %d is dead", index);
        stand_in_dies(index);
}

/* ---- what it sends ---- */

static void send_message(struct world *world, int index, const struct worker_msg *msg, int fd)
{
        world->speaks = true;
        stand_in_sends(index, msg, fd);
        world->speaks = false;
}

static enum worker_stage current_stage(enum process_stage stage)
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

static void send_hello(struct world *world, int index, enum process_stage stage, unsigned value)
{
        const struct process *process = &world->processes[index];
        const struct worker_msg msg = {
                .type = WORKER_MSG_HELLO,
                .hello = {.protocol = WORKER_PROTOCOL,
                          .uid = (char *)process->uid,
                          .version = (char *)"1",
                          .epoch = (uint16_t)process->epoch,
                          .restart = process->restart,
                          .started_at = 1,
                          .pid = FIRST_PID + index,
                          .number = (int)value - 1,
                          .leaves = !world->old_workers,
                          .stage = current_stage(stage)},
        };

        send_message(world, index, &msg, -1);
}

/* The list of BACKING: the store that the schedule is about, and the one beside it. A worker that refuses has no descriptor. */
static void send_list(struct world *world, int index, bool refused)
{
        const struct process *process = &world->processes[index];
        struct listed_store items[PLACES];
        struct worker_msg msg = {
                .type = WORKER_MSG_BACKING,
                .backing = {.boot = (char *)"", .lasting = (char *)"", .stores = {items, PLACES}},
        };
        int fds[PLACES];

        for (unsigned i = 0; i < PLACES; i++) {
                bool is_place = i == world->place;
                int at = is_place ? process->store : BESIDE, known = is_place ? process->known_as : BESIDE;

                items[i] = (struct listed_store){
                        .major = 8, .minor = 1, .inode = 100 + (uint64_t)at, .has_fd = !refused};
                store_identity_of(world, known, &items[i].identity);
                fds[i] = refused ? -1 : descriptor_open(world, at);
        }
        world->speaks = true;
        stand_in_sends_fds(index, &msg, fds, refused ? 0 : PLACES);
        world->speaks = false;
}

/* BACKING. One that serves what it was given says so only to a ublkd that has found it. */
static void send_backing(struct world *world, int index, bool refused)
{
        const struct process *process = &world->processes[index];
        struct worker_store store = {.major = 8, .minor = 1, .inode = 100 + (uint64_t)process->store};
        struct worker_msg msg;

        if (!stand_in_is_read(index)
                || (process->given != NO_STORE && (!world->listed || process->beside != NO_STORE)
                        && !worker_proc_adopted(process->stand_in.proc)))
                return;
        if (world->listed) {
                send_list(world, index, refused);
                return;
        }
        store_identity_of(world, process->known_as, &store.identity);
        msg = worker_store_message(&store);
        send_message(world, index, &msg, refused ? -1 : descriptor_open(world, process->store));
}

static void send_params(struct world *world, int index, unsigned size)
{
        struct worker_msg msg = {
                .type = WORKER_MSG_PARAMS,
                .params = {.size = size * MIB,
                           .size_max = UINT64_MAX,
                           .logical_block_size = 512,
                           .physical_block_size = 512,
                           .max_io_size = 1 << 20,
                           .queues = 1,
                           .queue_depth = 16},
        };
        char key[32];

        snprintf(key, sizeof(key), "file:8:1:%d", 100 + world->processes[index].store);
        (void)backing_claims_add(&msg.params.claims,
                &(const struct backing_claim){.key = key, .end = size * MIB, .writes = true});
        snprintf(key, sizeof(key), "file:8:1:%d", 100 + BESIDE);
        if (world->listed)
                (void)backing_claims_add(&msg.params.claims,
                        &(const struct backing_claim){.key = key, .end = size * MIB, .writes = true});
        send_backing(world, index, false);
        send_message(world, index, &msg, -1);
        backing_claims_clear(&msg.params.claims);
}

static void send_failed(struct world *world, int index, enum refusal refusal)
{
        static const struct {
                int error;
                const char *reason, *detail;
        } refusals[_REFUSAL_MAX] = {
                [REFUSAL_BROKEN] = {EIO,    "BackingUnreadable",  "The backing store cannot be read."    },
                [REFUSAL_GONE] = {ENOENT, "BackingFileMissing", "There is no such file."               },
                [REFUSAL_CHANGED] = {ESTALE, "BackingChanged",     "The store at the path is another one."},
        };
        struct worker_msg msg = {.type = WORKER_MSG_FAILED};
        char pointer[64];

        if (refusal == REFUSAL_CHANGED)
                send_backing(world, index, true);
        snprintf(pointer, sizeof(pointer), world->listed ? "/target/children/%u/path" : "/target/path",
                world->place);
        (void)problem_add(&msg.failed.problems, refusals[refusal].error, pointer, refusals[refusal].reason,
                "%s", refusals[refusal].detail);
        send_message(world, index, &msg, -1);
        problem_list_clear(&msg.failed.problems);
}

static void send_grown(struct world *world, int index, unsigned size, bool refused)
{
        struct worker_msg msg = {
                .type = WORKER_MSG_GROWN, .grown = {.size = size * MIB, .size_max = UINT64_MAX}
        };

        if (refused)
                (void)problem_add(
                        &msg.grown.problems, ENOSPC, "/size", "BackingTooSmall", "There is no room.");
        send_message(world, index, &msg, -1);
        problem_list_clear(&msg.grown.problems);
}

void seam_worker_receives(
        struct world *world, int index, enum message message, enum process_stage stage, unsigned value)
{
        if (!ublkd_acts(world))
                return;
        switch (message) {
        case MESSAGE_HELLO:
                send_hello(world, index, stage, value);
                break;
        case MESSAGE_PARAMS:
                send_params(world, index, value);
                break;
        case MESSAGE_READY:
                send_message(world, index, &(struct worker_msg){.type = WORKER_MSG_READY}, -1);
                break;
        case MESSAGE_FAILED:
                send_failed(world, index, (enum refusal)value);
                break;
        case MESSAGE_GROWN:
        case MESSAGE_REFUSED:
                send_grown(world, index, value, message == MESSAGE_REFUSED);
                break;
        default: /* it has closed its end */
                stand_in_leaves(index);
        }
}

/* ---- what ublkd sends ---- */

int on_worker_sent(int index, const struct worker_msg *msg)
{
        struct world *world = sim;
        enum message message = msg->type == WORKER_MSG_GO      ? MESSAGE_GO
                               : msg->type == WORKER_MSG_LIVE  ? MESSAGE_LIVE
                               : msg->type == WORKER_MSG_LEAVE ? MESSAGE_LEAVE
                                                               : MESSAGE_GROW;
        unsigned value = message == MESSAGE_GO     ? (unsigned)msg->go.number
                         : message == MESSAGE_GROW ? (unsigned)(msg->grow.size / MIB)
                                                   : 0;

        if (!ublkd_acts(world))
                return -EPIPE;
        ublkd_count(world, true);
        if (world_bad_luck(world) || (world->full_sockets && !world->calm && world_chance(world, 300)))
                return -EAGAIN;
        process_send(world, index, message, value, world->ublkd.incarnation);
        (void)ublkd_dies_here(world, "having sent a message to a worker");
        return 0;
}

/* The worker that takes the queues has opened the store in the device's record. */
static void judge_go(struct world *world, const struct worker_proc *worker)
{
        const struct process *process = process_of(worker);
        const struct database *database = &world->database;

        if (!database->exists || process->preflight)
                world_break(world, "a worker goes that has no device");
        else if (!worker_proc_params(worker))
                world_break(world, "a worker goes that has not opened its store");
        else if (database->record.number < 0)
                world_break(world, "a worker goes for no number");
        else if (database->record.epoch == process->epoch /* else what it serves goes before it is used */
                 && store_of_record(world, &database->record) != process->store
                 && world->disks[database->record.number].store != process->store)
                world_break(world, "a worker gets a store that is not the recorded one");
}

int __real_worker_proc_go(
        struct worker_proc *worker, int number, const struct data_route *route, const char *queue_cpus);
int __wrap_worker_proc_go(
        struct worker_proc *worker, int number, const struct data_route *route, const char *queue_cpus);
int __wrap_worker_proc_go(
        struct worker_proc *worker, int number, const struct data_route *route, const char *queue_cpus)
{
        if (ublkd_acts(sim))
                judge_go(sim, worker);
        return __real_worker_proc_go(worker, number, route, queue_cpus);
}

int __real_worker_proc_live(struct worker_proc *worker);
int __wrap_worker_proc_live(struct worker_proc *worker);
int __wrap_worker_proc_live(struct worker_proc *worker)
{
        if (ublkd_acts(sim) && sim->ublkd.seen.state != KERNEL_STATE_LIVE)
                world_break(sim, "a worker gets LIVE while its disk is not live");
        return __real_worker_proc_live(worker);
}

int __real_worker_proc_grow(struct worker_proc *worker, uint64_t size);
int __wrap_worker_proc_grow(struct worker_proc *worker, uint64_t size);
int __wrap_worker_proc_grow(struct worker_proc *worker, uint64_t size)
{
        if (ublkd_acts(sim) && worker_proc_stage(worker) != WORKER_STAGE_SERVING)
                world_break(sim, "a worker that does not serve gets GROW");
        return __real_worker_proc_grow(worker, size);
}

int __real_worker_proc_leave(struct worker_proc *worker);
int __wrap_worker_proc_leave(struct worker_proc *worker);
int __wrap_worker_proc_leave(struct worker_proc *worker)
{
        if (ublkd_acts(sim) && worker_proc_stage(worker) != WORKER_STAGE_SERVING)
                world_break(sim, "a worker that does not serve gets LEAVE");
        return __real_worker_proc_leave(worker);
}

/* ---- the beginning ---- */

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

/* Of a list: what the worker must find in each place, and the descriptors that it gets. */
static void take_list(
        struct world *world, const struct worker_msg *config, const int *fds, struct process *process)
{
        const struct store_list *list = &config->config.stores;
        unsigned next = 0;

        process->given = NO_STORE;
        if (list->count != PLACES) {
                world_break(world, "a worker is given another number of stores than the spec has");
                return;
        }
        for (unsigned i = 0; i < PLACES; i++) {
                int store = list->items[i].has_fd ? descriptor_store(world, fds[next]) : NO_STORE;

                if (list->items[i].has_fd && (fds[next++] < 0 || store == NO_STORE))
                        world_break(world, "a worker is given a descriptor that is not open");
                if (i == world->place) {
                        process->given = store;
                        process->expected = store_of_token(list->items[i].identity.lasting);
                        continue;
                }
                process->beside = store;
                if (store != NO_STORE && store != BESIDE)
                        world_break(world, "a worker is given the store of another place");
                store = store_of_token(list->items[i].identity.lasting);
                if (store != NO_STORE && store != BESIDE)
                        world_break(world, "a worker must find the store of another place");
        }
        if (process->given == BESIDE || process->expected == BESIDE)
                world_break(world, "a worker gets the store of another place");
}

int on_worker_start(const struct worker_msg *config, const int *stores, int *ret_index)
{
        struct world *world = sim;
        struct process process = {
                .alive = true,
                .preflight = config->config.lock == WORKER_LOCK_NEVER,
                .epoch = config->config.epoch,
                .restart = config->config.restart,
                .connection = world->ublkd.incarnation,
                .number = NO_PROCESS,
                .given = descriptor_store(world, stores[0]),
                .expected = store_of_token(config->config.expected_lasting),
                .store = NO_STORE,
                .known_as = NO_STORE,
                .beside = NO_STORE,
        };
        int index;

        if (!ublkd_acts(world))
                return -EPIPE;
        ublkd_count(world, true);
        judge_spawn(world, process.preflight);
        if (world_bad_luck(world))
                return -EAGAIN;
        if (world->listed)
                take_list(world, config, stores, &process);
        else if (stores[0] >= 0 && process.given == NO_STORE)
                world_break(world, "a worker is given a descriptor that is not open");
        process.size = size_in(config->config.spec);
        snprintf(process.uid, sizeof(process.uid), "%s", config->config.uid);
        index = process_spawn(world, &process);
        if (index == NO_PROCESS)
                return -EAGAIN;
        TRACE(world, "ublkd: starts worker %d%s", index, process.preflight ? ", preflight" : "");
        *ret_index = index;
        (void)ublkd_dies_here(world, "having started a worker");
        return 0;
}

int on_worker_connect(const char *uid, int *ret_index)
{
        struct world *world = sim;
        int index = world->socket_owner;

        if (!ublkd_acts(world))
                return -EPIPE;
        if (index == NO_PROCESS || strcmp(world->processes[index].uid, uid) != 0)
                return -ENOENT;
        if (!world->processes[index].alive || !world->processes[index].listens
                || world->processes[index].deaf)
                return -ECONNREFUSED;
        if (world_bad_luck(world))
                return -EAGAIN; /* alive, but does not accept connections */
        TRACE(world, "ublkd: adopts worker %d", index);
        *ret_index = index;
        process_send(world, index, MESSAGE_CONNECT, 0, world->ublkd.incarnation);
        return 0;
}

/* ublkd knows the worker that it has started last. */
int on_worker_marked(const char *uid, int *ret_index)
{
        struct world *world = sim;
        int index = world->socket_owner;

        if (index == NO_PROCESS || !world->processes[index].alive
                || strcmp(world->processes[index].uid, uid) != 0)
                return -ENOENT;
        TRACE(world, "ublkd: finds worker %d, which does not listen", index);
        *ret_index = index;
        return 0;
}
