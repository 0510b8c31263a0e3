/* SPDX-License-Identifier: MIT */
/* The reconciler around the real plan.c and attempt.c: facts gathered anew for each step, one step at a time,
 * SIGKILLed between any two. */
#include "sim.h"

#include <errno.h>

enum {
        STEPS_A_SECOND = 200, /* more is spinning */
        ASKS_A_SECOND = 800,
};

void supervisor_die(struct world *world, const char *why)
{
        struct supervisor *supervisor = &world->supervisor;

        if (!supervisor->alive)
                return;
        TRACE(world, "supervisor %u: killed, %s", supervisor->incarnation, why);
        supervisor->alive = false;
        helper_forget_supervisor(world, supervisor->incarnation);
        for (int i = 0; i < world->process_count; i++)
                if (world->processes[i].alive && world->processes[i].connection == supervisor->incarnation)
                        process_send(world, i, MESSAGE_EOF, supervisor->incarnation);
        world_at(world, world->now + world_between(world, 100 * MS, 2 * SECOND), EVENT_SUPERVISOR_STARTS, 0,
                0, 0);
}

/* SIGKILL at a bad moment. */
static bool dies_here(struct world *world, const char *where)
{
        if (!world_bad_luck(world))
                return false;
        supervisor_die(world, where);
        return true;
}

static void set_timer(struct world *world, uint64_t time)
{
        if (time != UINT64_MAX)
                world_at(world, time > world->now ? time : world->now + 1, EVENT_TIMER, 0, 0,
                        ++world->supervisor.timer);
        else
                world->supervisor.timer++;
}

static void adopt(struct world *world)
{
        struct supervisor *supervisor = &world->supervisor;
        int worker = world->socket_owner;

        supervisor->worker = NOBODY;
        if (worker == NOBODY || !world->processes[worker].alive || !world->processes[worker].listens)
                return;
        TRACE(world, "supervisor %u: adopts worker %d", supervisor->incarnation, worker);
        supervisor->worker = worker;
        supervisor->stage = PLAN_WORKER_STARTING;
        process_send(world, worker, MESSAGE_CONNECT, supervisor->incarnation);
}

void supervisor_start(struct world *world)
{
        struct supervisor *supervisor = &world->supervisor;

        if (supervisor->alive)
                return;
        *supervisor = (struct supervisor){
                .alive = true,
                .incarnation = supervisor->incarnation + 1,
                .timer = supervisor->timer + 1,
        };
        TRACE(world, "supervisor %u: starts", supervisor->incarnation);
        adopt(world);
        supervisor_kick(world);
}

/* ---- facts ---- */

static enum plan_worker known_stage(const struct supervisor *supervisor)
{
        return supervisor->worker == NOBODY ? PLAN_WORKER_NONE
               : supervisor->killed         ? PLAN_WORKER_LEAVING
                                            : supervisor->stage;
}

static enum plan_kernel known_kernel(const struct supervisor *supervisor)
{
        static const enum plan_kernel by_state[] = {
                [DISK_DEAD] = KERNEL_ADDED,
                [DISK_LIVE] = KERNEL_LIVE,
                [DISK_QUIESCED] = KERNEL_DOWN,
                [DISK_FAIL_IO] = KERNEL_DOWN,
        };

        if (!supervisor->kernel.exists)
                return KERNEL_ABSENT;
        return plan_kernel(by_state[supervisor->kernel.state], supervisor->kernel.recovery != RECOVERY_NONE,
                known_stage(supervisor));
}

static void count(struct world *world, bool step)
{
        if (world->now - world->window_since >= SECOND) {
                world->window_since = world->now;
                world->window_steps = world->window_asks = 0;
        }
        if (step) {
                world->steps++;
                if (++world->window_steps > STEPS_A_SECOND)
                        world_break(world, "the supervisor spins: too many steps in a second");
        } else {
                world->asks++;
                if (++world->window_asks > ASKS_A_SECOND)
                        world_break(world, "the supervisor spins: too many questions in a second");
        }
}

static void issue(struct world *world, enum command_type type)
{
        struct supervisor *supervisor = &world->supervisor;
        struct command command = {
                .type = type,
                .number = world->record.number,
                .instance = supervisor->kernel.instance,
                .worker = supervisor->worker,
                .epoch = world->record.epoch,
                .size = type == COMMAND_UPDATE_SIZE ? world->record.size : supervisor->size,
                .recovery = world->record.recovery,
                .incarnation = supervisor->incarnation,
        };

        if (command.number < 0) {
                world_break(world, "a disk that has no number is handled");
                return;
        }
        if (type != COMMAND_GET_INFO && type != COMMAND_ADD && world->disks[command.number].exists
                && world->disks[command.number].stranger
                && world->disks[command.number].instance == command.instance)
                world_break(world, "a stranger's disk is touched");
        supervisor->busy = true;
        command.result = helper_submit(world, &command);
        if (command.result < 0)
                supervisor_result(world, &command);
}

static void decide(struct world *world);

static void ask(struct world *world)
{
        struct supervisor *supervisor = &world->supervisor;

        supervisor->action = _ACTION_MAX; /* none: a question */
        supervisor->stage_before = known_stage(supervisor);
        supervisor->number_before = world->record.number;
        count(world, false);
        if (world->record.number < 0) {
                supervisor->kernel = (struct disk){};
                decide(world);
                return;
        }
        issue(world, COMMAND_GET_INFO);
}

void supervisor_kick(struct world *world)
{
        struct supervisor *supervisor = &world->supervisor;

        if (!supervisor->alive || !world->record.exists)
                return;

        if (supervisor->busy)
                supervisor->again = true;
        else
                ask(world);
}

/* ---- steps ---- */

static void give_out_number(struct world *world)
{
        struct supervisor *supervisor = &world->supervisor;

        if (world->record.number < 0) {
                world->record.number = (int)(supervisor->numbers_tried++ % NUMBERS);
                supervisor->number_is_fresh = true;
        }
}

/* A number that a stranger has is given back only while it is certain that no disk of ours can come there. */
static void number_is_taken(struct world *world)
{
        struct supervisor *supervisor = &world->supervisor;

        if (supervisor->number_is_fresh && !world->record.fixed_number
                && !attempt_is_unsure(&supervisor->attempt, world->now) && supervisor->stranger_there)
                world->record.number = -1;
}

/* What makes NOTHING true for the next supervisor as well. */
static void rest(struct world *world, enum plan_want want)
{
        struct record *record = &world->record;
        struct supervisor *supervisor = &world->supervisor;

        if (want == WANT_PRESENT || want == WANT_EXTENDED || want == WANT_GROWN || want == WANT_GIVEN_UP) {
                if (record->recover_requested) {
                        record->held = record->recover_requested = false;
                        if (dies_here(world, "having noted that the recover is done"))
                                return;
                }
                record->held = record->manual;
        }
        if (want == WANT_ABSENT) {
                record->held = false;
                if (dies_here(world, "before it removes the record"))
                        return;
                if (record->deleting
                        && attempt_due(&supervisor->attempt, ACTION_NOTHING, world->now) == UINT64_MAX) {
                        TRACE(world, "supervisor: the record is removed");
                        record->exists = false;
                        return;
                }
        }
        supervisor->rested_at = world->now;
}

static void done(struct world *world, int result)
{
        struct supervisor *supervisor = &world->supervisor;

        TRACE(world, "supervisor: %s → %d", plan_action_to_string(supervisor->action), result);
        attempt_done(&supervisor->attempt, supervisor->action, result, world->now);
        supervisor->busy = supervisor->again = false;
        ask(world);
}

/* Steps that are over at once. */
static void spawn(struct world *world)
{
        struct supervisor *supervisor = &world->supervisor;
        int worker;

        for (int i = 0; i < world->process_count; i++)
                if (world->processes[i].alive && world->processes[i].connection == supervisor->incarnation)
                        world_break(world, "a second worker is started beside one that listens to us");
        if (world->record.manual && !world->record.recover_requested
                && (world->record.held || known_kernel(supervisor) == KERNEL_DOWN))
                world_break(world, "a manual device is recovered unasked");
        if (world_bad_luck(world)) {
                done(world, -EAGAIN);
                return;
        }
        worker = process_spawn(world, world->record.epoch,
                known_kernel(supervisor) == KERNEL_DOWN ? supervisor->kernel.size : world->record.size);
        TRACE(world, "supervisor: starts worker %d", worker);
        if (dies_here(world, "having started a worker") || worker == NOBODY)
                return;
        supervisor->worker = worker;
        supervisor->stage = PLAN_WORKER_STARTING;
        supervisor->killed = false;
        done(world, 0);
}

static void tell(struct world *world, enum message message, enum plan_worker stage, int result)
{
        struct supervisor *supervisor = &world->supervisor;

        if (supervisor->worker == NOBODY) {
                done(world, -EPIPE);
                return;
        }
        if (world_bad_luck(world)) {
                done(world, -EAGAIN);
                return;
        }
        process_send(world, supervisor->worker, message, supervisor->incarnation);
        if (dies_here(world, "having sent GO or LIVE"))
                return;
        if (supervisor->stage < stage)
                supervisor->stage = stage;
        done(world, result);
}

static void stop_worker(struct world *world)
{
        struct supervisor *supervisor = &world->supervisor;

        if (supervisor->worker == NOBODY) {
                world_break(world, "a worker that is not there is stopped");
                return;
        }
        process_kill(world, supervisor->worker, "is killed by the supervisor");
        if (dies_here(world, "having killed a worker"))
                return;
        supervisor->killed = true;
        done(world, 0);
}

/* As in device_steps.c; what is not wanted but served is absent by wish. Nobody here has a disk open
 * exclusively, so that a kernel without TRY_STOP_DEV never refuses. */
static bool may_refuse(const struct world *world)
{
        const struct supervisor *supervisor = &world->supervisor;

        return world->can_try_stop && !world->record.forced && supervisor->kernel.state == DISK_LIVE
               && known_stage(supervisor) == PLAN_WORKER_SERVING;
}

static void act(struct world *world, enum plan_action action)
{
        static const enum command_type commands[_ACTION_MAX] = {
                [ACTION_ADD_DEV] = COMMAND_ADD,
                [ACTION_SET_PARAMS] = COMMAND_SET_PARAMS,
                [ACTION_START_DEV] = COMMAND_START,
                [ACTION_BEGIN_RECOVERY] = COMMAND_BEGIN_RECOVERY,
                [ACTION_END_RECOVERY] = COMMAND_END_RECOVERY,
                [ACTION_DEL_DEV] = COMMAND_DEL,
                [ACTION_RETIRE_WORKER] = COMMAND_QUIESCE,
                [ACTION_GROW_DISK] = COMMAND_UPDATE_SIZE,
        };
        struct supervisor *supervisor = &world->supervisor;

        if (dies_here(world, "before a step"))
                return;
        supervisor->action = action;
        count(world, true);
        switch (action) {
        case ACTION_SPAWN:
                spawn(world);
                break;
        case ACTION_MARK_SERVING:
                tell(world, MESSAGE_LIVE, PLAN_WORKER_SERVING, 0);
                break;
        case ACTION_EXTEND_WORKER:
                tell(world, MESSAGE_GROW, PLAN_WORKER_SERVING, 0);
                break;
        case ACTION_STOP_WORKER:
                stop_worker(world);
                break;
        case ACTION_RETIRE_WORKER:
                if (world->can_quiesce && supervisor->kernel.recovery != RECOVERY_NONE)
                        issue(world, COMMAND_QUIESCE);
                else
                        stop_worker(world);
                break;
        case ACTION_STOP_DEV:
                issue(world, may_refuse(world) ? COMMAND_TRY_STOP : COMMAND_STOP);
                break;
        default:
                if (action == ACTION_ADD_DEV)
                        give_out_number(world);
                issue(world, commands[action]);
        }
}

/* I/O that waits is failed only if the user said so or if nothing else can be done. */
static void judge_stop(struct world *world, enum plan_want want)
{
        const struct disk *disk = &world->supervisor.kernel;

        if (want != WANT_ABSENT && want != WANT_GIVEN_UP
                && (disk->state == DISK_QUIESCED || disk->state == DISK_FAIL_IO) && !disk->spoilt
                && disk->refusals < ATTEMPT_REFUSALS)
                world_break(world, "a disk that could be recovered is stopped");
        if (want != WANT_ABSENT && want != WANT_GIVEN_UP && disk->state == DISK_LIVE && disk->holder != NOBODY
                && world->processes[disk->holder].alive && !world->processes[disk->holder].hung)
                world_break(world, "a disk that is served is stopped");
}

static enum plan_want gather(struct world *world, struct plan_facts *ret)
{
        struct supervisor *supervisor = &world->supervisor;
        const struct record *record = &world->record;
        struct plan_wish wish = {
                .deleting = record->deleting,
                .enabled = record->enabled,
                .kernel_is_old = supervisor->kernel.exists && supervisor->kernel.epoch != record->epoch,
                .worker_is_old = known_stage(supervisor) != PLAN_WORKER_NONE
                                 && known_stage(supervisor) != PLAN_WORKER_STARTING
                                 && known_stage(supervisor) != PLAN_WORKER_LEAVING
                                 && world->processes[supervisor->worker].epoch != record->epoch,
                .worker_is_outdated = supervisor->worker != NOBODY
                                      && world->processes[supervisor->worker].restart != record->restart,
                .manual = record->manual,
                .held = record->held,
                .recover_requested = record->recover_requested,
                .kernel = known_kernel(supervisor),
                .worker = known_stage(supervisor),
                .size_wanted = record->size,
                .size_of_worker = supervisor->size,
                .size_of_disk = world->can_grow && supervisor->kernel.exists ? supervisor->kernel.size : 0,
                .give_up_after = record->give_up_after,
                .now = world->now,
        };

        if (supervisor->kernel.exists
                && (supervisor->kernel.state == DISK_QUIESCED
                        || (supervisor->kernel.state == DISK_LIVE && supervisor->worker == NOBODY))) {
                if (!supervisor->lost_since)
                        supervisor->lost_since = world->now;
        } else
                supervisor->lost_since = 0;
        wish.lost_since = supervisor->lost_since;
        *ret = (struct plan_facts){.want = plan_want(&wish), .kernel = wish.kernel, .worker = wish.worker};
        set_timer(world, plan_want_until(&wish));
        return ret->want;
}

static void decide(struct world *world)
{
        struct supervisor *supervisor = &world->supervisor;
        struct plan_facts facts;
        enum plan_want want = gather(world, &facts);
        uint64_t give_up_at = world->record.give_up_after && supervisor->lost_since
                                      ? supervisor->lost_since + world->record.give_up_after
                                      : UINT64_MAX;
        enum plan_action action;
        uint64_t due;

        facts.trouble = attempt_observe(&supervisor->attempt, &facts, world->now);
        action = world->plan(&facts);
        due = attempt_due(&supervisor->attempt, action, world->now);
        TRACE(world, "supervisor: want %s, kernel %s, worker %s, trouble %s: %s%s",
                plan_want_to_string(facts.want), plan_kernel_to_string(facts.kernel),
                plan_worker_to_string(facts.worker), plan_trouble_to_string(facts.trouble),
                plan_action_to_string(action), due > world->now ? ", later" : "");
        supervisor->busy = false;
        if (action == ACTION_NOTHING || want == WANT_EXTENDED || want == WANT_GROWN)
                rest(world, want);
        if (!supervisor->alive || !world->record.exists)
                return;
        if (action == ACTION_NOTHING || action == ACTION_WAIT || due > world->now) {
                set_timer(world, due < give_up_at || give_up_at <= world->now ? due : give_up_at);
                return;
        }
        if (action == ACTION_STOP_DEV)
                judge_stop(world, want);
        supervisor->busy = true;
        act(world, action);
}

/* ---- what comes in ---- */

static void answered(struct world *world, const struct command *command)
{
        struct supervisor *supervisor = &world->supervisor;

        supervisor->busy = false;
        if (command->result < 0) {
                set_timer(world, attempt_blind(&supervisor->attempt, world->now));
                supervisor->again = false;
                return;
        }
        /* a picture that is not consistent: look again */
        if (supervisor->again || supervisor->stage_before != known_stage(supervisor)
                || supervisor->number_before != world->record.number) {
                supervisor->again = false;
                ask(world);
                return;
        }
        supervisor->kernel = command->info;
        supervisor->stranger_there = command->info.exists && command->info.stranger;
        if (supervisor->stranger_there)
                supervisor->kernel = (struct disk){};
        if (supervisor->kernel.exists)
                supervisor->number_is_fresh = false;
        decide(world);
}

void supervisor_result(struct world *world, const struct command *command)
{
        struct supervisor *supervisor = &world->supervisor;
        int r = command->result;

        if (!supervisor->alive || command->incarnation != supervisor->incarnation)
                return;
        if (command->type == COMMAND_GET_INFO) {
                answered(world, command);
                return;
        }
        if (dies_here(world, "between a step and the note of it"))
                return;
        if (command->type == COMMAND_ADD)
                r = attempt_add_result(r, supervisor->stranger_there);
        if (command->type == COMMAND_ADD && r == -EEXIST)
                number_is_taken(world);
        if ((command->type == COMMAND_SET_PARAMS && r == 0)
                || (command->type == COMMAND_BEGIN_RECOVERY && attempt_says_go(r)))
                tell(world, MESSAGE_GO, PLAN_WORKER_FETCHING, r);
        else
                done(world, r);
}

void supervisor_hear(struct world *world, int worker, enum message message, enum process_stage stage)
{
        static const enum plan_worker stages[] = {
                [PROCESS_BOOTING] = PLAN_WORKER_STARTING,
                [PROCESS_OPENING] = PLAN_WORKER_STARTING,
                [PROCESS_OPEN] = PLAN_WORKER_STARTING, /* until PARAMS comes */
                [PROCESS_ATTACHING] = PLAN_WORKER_FETCHING,
                [PROCESS_FETCHING] = PLAN_WORKER_FETCHING,
                [PROCESS_READY] = PLAN_WORKER_READY,
                [PROCESS_SERVING] = PLAN_WORKER_SERVING,
                [PROCESS_LEAVING] = PLAN_WORKER_LEAVING,
        };
        enum plan_worker said = message == MESSAGE_HELLO    ? stages[stage]
                                : message == MESSAGE_PARAMS ? PLAN_WORKER_PARAMS
                                                            : PLAN_WORKER_READY;
        struct supervisor *supervisor = &world->supervisor;

        if (worker != supervisor->worker)
                return;
        if (message == MESSAGE_PARAMS || message == MESSAGE_GROWN)
                supervisor->size = world->processes[worker].size;
        if (message == MESSAGE_GROWN) {
                supervisor_kick(world);
                return;
        }
        if (said <= supervisor->stage)
                return;
        TRACE(world, "supervisor: worker %d is %s", worker, plan_worker_to_string(said));
        supervisor->stage = said;
        supervisor_kick(world);
}

void supervisor_sees_death(struct world *world, int worker)
{
        struct supervisor *supervisor = &world->supervisor;

        if (!supervisor->alive || worker != supervisor->worker)
                return;
        TRACE(world, "supervisor: worker %d is dead", worker);
        attempt_worker_died(&supervisor->attempt, world->now);
        supervisor->worker = NOBODY;
        supervisor->stage = PLAN_WORKER_NONE;
        supervisor->killed = false;
        supervisor_kick(world);
}

void supervisor_released(struct world *world, int number)
{
        if (number != world->record.number)
                return;
        attempt_released(&world->supervisor.attempt, world->now);
        supervisor_kick(world);
}
