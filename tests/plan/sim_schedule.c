/* SPDX-License-Identifier: MIT */
/* One schedule: what goes wrong and when, what the user does, and what must be true at the end. */
#include "sim.h"

enum {
        /* After the last fault: deadlines, limits of patience and back-off, one after the other. */
        CONVERGES_WITHIN = 900 * 1000 * 1000,
        LOOKS_AGAIN_WITHIN = 70 * 1000 * 1000,
};

/* A disabled device is not looked at again. */
static bool is_gone_for_good(const struct world *world)
{
        return world->supervisor.rested_at > 0 && !world->record.enabled;
}

/* ---- the user, the administrator, bad luck ---- */

static void spec_changes(struct world *world)
{
        attempt_reset(&world->supervisor.attempt);
        supervisor_kick(world);
}

static void user_replaces(struct world *world)
{
        world->record.epoch++;
        world->record.held = false; /* the store does that with every new epoch */
        world->was_live = false;
        TRACE(world, "user: another spec, epoch %u", world->record.epoch);
        spec_changes(world);
}

static void user_toggles(struct world *world)
{
        world->record.enabled = !world->record.enabled;
        TRACE(world, "user: %s", world->record.enabled ? "enables" : "disables");
        spec_changes(world);
}

static void user_deletes(struct world *world)
{
        if (!world_chance(world, 200))
                return;
        world->record.deleting = true;
        world->record.forced = world_chance(world, 300);
        TRACE(world, "user: deletes%s", world->record.forced ? ", by force" : "");
        spec_changes(world);
}

static void user_recovers(struct world *world)
{
        world->record.recover_requested = true;
        TRACE(world, "user: recover");
        spec_changes(world);
}

/* Without UPDATE_SIZE the store counts it as another spec. */
static void user_grows(struct world *world)
{
        world->record.size += 1 + (unsigned)world_random(world, 3);
        TRACE(world, "user: size %u", world->record.size);
        if (world->can_grow)
                spec_changes(world);
        else
                user_replaces(world);
}

/* As the store does it: a disk that cannot outlive its worker is made anew. */
static void user_restarts(struct world *world)
{
        world->record.restart++;
        world->record.recover_requested = true;
        TRACE(world, "user: restart %u", world->record.restart);
        if (world->record.recovery == RECOVERY_NONE)
                user_replaces(world);
        else
                spec_changes(world);
}

static void user_changes_trigger(struct world *world)
{
        world->record.manual = !world->record.manual;
        TRACE(world, "user: recovery is %s", world->record.manual ? "manual" : "automatic");
        spec_changes(world);
}

static void user_changes_patience(struct world *world)
{
        static const uint64_t patience[] = {0, 1, 5 * MS, SECOND, 20 * SECOND};

        world->record.give_up_after = patience[world_random(world, 5)];
        TRACE(world, "user: gives up after %.3f s", (double)world->record.give_up_after / 1e6);
        spec_changes(world);
}

static void kill_worker(struct world *world)
{
        for (int i = world->process_count - 1; i >= 0; i--)
                if (world->processes[i].alive && world_chance(world, 700)) {
                        process_kill(world, i, "is killed from outside");
                        return;
                }
}

static void hang_worker(struct world *world)
{
        int last = world->process_count - 1;

        if (last >= 0 && world->processes[last].alive) {
                TRACE(world, "worker %d: hangs", last);
                world->processes[last].hung = true;
        }
}

static void kill_supervisor(struct world *world)
{
        supervisor_die(world, "from outside");
}

static void admin_stops(struct world *world)
{
        int number = world->record.number;

        if (number >= 0 && !world->disks[number].stranger) {
                TRACE(world, "administrator: STOP_DEV %d", number);
                (void)kernel_stop(world, number);
        }
}

static void admin_deletes(struct world *world)
{
        int number = world->record.number;

        if (number >= 0 && !world->disks[number].stranger) {
                TRACE(world, "administrator: DEL_DEV %d", number);
                (void)kernel_delete(world, number);
        }
}

static void backend_changes(struct world *world)
{
        world->backend_broken = !world->backend_broken;
        TRACE(world, "the backend is %s", world->backend_broken ? "broken" : "good");
}

static void command_fails_from_now_on(struct world *world)
{
        world->failing = (int)world_random(world, COMMAND_DEL + 2) - 1;
        TRACE(world, "kernel: command %d fails from now on", world->failing);
}

static void block_device_is_opened(struct world *world)
{
        int number = world->record.number;

        if (number < 0 || !world->disks[number].exists || world->disks[number].state != DISK_LIVE)
                return;
        world->disks[number].openers++;
        world_at(world, world->now + world_between(world, MS, 5 * SECOND), EVENT_OPENER_CLOSES, number, 0,
                world->disks[number].instance);
}

static void stranger_comes_or_goes(struct world *world)
{
        int number = (int)world_random(world, NUMBERS - 1); /* one number stays free */
        struct disk *disk = &world->disks[number];

        if (!disk->exists)
                *disk = (struct disk){.exists = true,
                        .stranger = true,
                        .instance = ++world->instances,
                        .state = DISK_LIVE,
                        .holder = NOBODY};
        else if (disk->stranger)
                disk->exists = false;
        TRACE(world, "stranger: disk %d %s", number,
                disk->exists ? disk->stranger ? "comes" : "is ours" : "goes");
}

static const struct {
        unsigned weight;
        void (*happen)(struct world *world);
} faults[] = {
        {8, kill_worker              },
        {6, kill_supervisor          },
        {1, hang_worker              },
        {2, admin_stops              },
        {2, admin_deletes            },
        {2, backend_changes          },
        {2, block_device_is_opened   },
        {2, command_fails_from_now_on},
        {2, stranger_comes_or_goes   },
        {1, user_replaces            },
        {2, user_toggles             },
        {1, user_deletes             },
        {3, user_recovers            },
        {3, user_restarts            },
        {3, user_grows               },
        {2, user_changes_trigger     },
        {2, user_changes_patience    },
        {2, helper_falls_silent      },
        {2, helper_is_killed         },
};

enum { FAULTS = sizeof(faults) / sizeof(faults[0]) };

static void next_fault(struct world *world)
{
        if (world->faults_left-- > 0)
                world_at(world, world->now + world_random(world, 2 * world->fault_gap), EVENT_FAULT, 0, 0, 0);
        else
                world_at(world, world->now, EVENT_CALM, 0, 0, 0);
}

static void fault(struct world *world)
{
        unsigned total = 0, draw;

        for (unsigned i = 0; i < FAULTS; i++)
                total += faults[i].weight;
        draw = (unsigned)world_random(world, total);
        for (unsigned i = 0; i < FAULTS; i++) {
                if (draw < faults[i].weight) {
                        faults[i].happen(world);
                        break;
                }
                draw -= faults[i].weight;
        }
        next_fault(world);
}

static void calm_down(struct world *world)
{
        int number = world->record.number;

        TRACE(world, "calm");
        world->calm = true;
        world->calm_at = world->now;
        world->backend_broken = false;
        world->failing = -1;
        /* a stranger that sits on a number that is ours for good may sit there for good */
        if (number >= 0 && world->disks[number].exists && world->disks[number].stranger)
                world->disks[number].exists = false;
}

static void begin(struct world *world)
{
        static const uint64_t gaps[] = {300, 3 * MS, 30 * MS, 300 * MS, 3 * SECOND, 30 * SECOND};

        world->failing = -1;
        world->refuses_second_begin = world_chance(world, 500);
        world->notices_early = world_chance(world, 500);
        world->slow_backend = world_chance(world, 200);
        world->can_try_stop = world_chance(world, 500);
        world->can_grow = world_chance(world, 500);
        world->can_quiesce = world_chance(world, 500);
        world->bad_luck = (unsigned[]){0, 5, 20, 60}[world_random(world, 4)];
        world->fault_gap = gaps[world_random(world, 6)];
        world->faults_left = (unsigned)world_random(world, 16);
        world->record = (struct record){
                .exists = true,
                .enabled = true,
                .manual = world_chance(world, 250),
                .epoch = 1,
                .size = 1,
                .number = -1,
                .recovery = (enum disk_recovery)world_random(world, _RECOVERY_MAX),
        };
        if (world_chance(world, 300)) {
                world->record.fixed_number = true;
                world->record.number = 1;
        }
        if (world_chance(world, 300))
                stranger_comes_or_goes(world);
        if (world_chance(world, 100))
                user_changes_patience(world);
        world_at(world, world->now, EVENT_SUPERVISOR_STARTS, 0, 0, 0);
        world_at(world, world->now + world_random(world, 20 * MS), EVENT_FAULT, 0, 0, 0);
}

/* ---- the end ---- */

static int our_disks(const struct world *world, int *ret_number)
{
        int count = 0;

        for (int i = 0; i < NUMBERS; i++)
                if (world->disks[i].exists && !world->disks[i].stranger) {
                        *ret_number = i;
                        count++;
                }
        return count;
}

/* One that hangs before GO and whose socket nobody can reach: not there yet when its supervisor died, or
 * replaced by the next worker's. It has no disk. */
static bool is_out_of_reach(const struct world *world, int index)
{
        const struct process *process = &world->processes[index];

        return process->hung && !process->going && (!process->listens || index != world->socket_owner);
}

static int living_workers(const struct world *world, int *ret_worker)
{
        int count = 0;

        for (int i = 0; i < world->process_count; i++)

                if (world->processes[i].alive && !is_out_of_reach(world, i)) {
                        *ret_worker = i;
                        count++;
                }
        return count;
}

/* One that hangs with its queues in hand says nothing about it. */
static bool is_serving(const struct process *process)
{
        return process->stage == PROCESS_SERVING || (process->stage == PROCESS_READY && process->hung);
}

static void judge_live(struct world *world)
{
        int number = -1, worker = NOBODY;
        const struct disk *disk;

        if (our_disks(world, &number) != 1 || living_workers(world, &worker) != 1) {
                world_break(world, "there is not exactly one disk with one worker");
                return;
        }
        disk = &world->disks[number];
        if (disk->state != DISK_LIVE || disk->deleted || number != world->record.number
                || disk->epoch != world->record.epoch)
                world_break(world, "the disk is not live, or not the right one");
        else if (disk->holder != worker || !is_serving(&world->processes[worker]) || !disk->fetched_all)
                world_break(world, "the disk is not served");
        else if (world->processes[worker].epoch != world->record.epoch)
                world_break(world, "the disk is served by a worker of an old spec");
        else if (world->processes[worker].restart != world->record.restart)
                world_break(world, "the disk is served by a worker that was to be replaced");
        else if (world->processes[worker].size < disk->size
                 || (disk->size != world->record.size
                         && !world->processes[worker].hung)) /* it cannot be asked */
                world_break(world, "the disk has not the right size");
        else if (world->supervisor.worker != worker)
                world_break(world, "the supervisor does not know the worker");
        else if (world->record.recover_requested || world->record.held != world->record.manual)
                world_break(world, "the record does not say that the disk is live");
}

static void judge_gone(struct world *world)
{
        int number, worker;

        if (our_disks(world, &number) != 0)
                world_break(world, "a disk is left behind");
        if (living_workers(world, &worker) != 0)
                world_break(world, "a worker is left behind");
        if (world->record.exists && world->record.deleting)
                world_break(world, "a deleted record is left behind");
}

static void judge_held(struct world *world)
{
        int number = -1, worker;

        if (!world->record.manual || world->record.recover_requested || !world->was_live)
                world_break(world, "a disk that ought to be live is not");
        if (living_workers(world, &worker) != 0)
                world_break(world, "a worker serves a held disk");
        if (our_disks(world, &number) > 1)
                world_break(world, "a disk is left behind");
        if (number >= 0 && world->disks[number].state == DISK_QUIESCED && world->record.give_up_after > 0)
                world_break(world, "I/O waits for longer than the user allows");
}

static void judge(struct world *world)
{
        const struct record *record = &world->record;
        int number = -1, worker;

        if (!record->exists || record->deleting || !record->enabled)
                judge_gone(world);
        else if (record->manual && living_workers(world, &worker) == 0
                 && (our_disks(world, &number) == 0 || world->disks[number].state != DISK_LIVE))
                judge_held(world);
        else
                judge_live(world);
}

static void happen(struct world *world, const struct event *event)
{
        switch (event->kind) {
        case EVENT_FAULT:
                fault(world);
                break;
        case EVENT_CALM:
                calm_down(world);
                break;
        case EVENT_COMMAND_EFFECT:
        case EVENT_COMMAND_RESULT:
        case EVENT_COMMAND_DEADLINE:
        case EVENT_COMMAND_LATE:
        case EVENT_HELPER_DEATH:
                helper_event(world, event);
                break;
        case EVENT_PROCESS_STEP:
                if (world->processes[event->a].stage == (enum process_stage)event->c)
                        process_step(world, event->a);
                break;
        case EVENT_TO_PROCESS:
                process_hear(world, event->a, (enum message)(event->b & 0xff), event->c);
                break;
        case EVENT_TO_SUPERVISOR:
                if (world->supervisor.alive && world->supervisor.incarnation == event->c)
                        supervisor_hear(world, event->a, (enum message)(event->b & 0xff),
                                (enum process_stage)(event->b >> 8));
                break;
        case EVENT_DEATH_SEEN:
                supervisor_sees_death(world, event->a);
                break;
        case EVENT_STATE_FOLLOWS:
                kernel_state_follows(world, event->a);
                break;
        case EVENT_RELEASED:
                kernel_released(world, event->a);
                break;
        case EVENT_OPENER_CLOSES:
                kernel_close_block_device(world, event->a, event->c);
                break;
        case EVENT_TIMER:
                if (event->c == world->supervisor.timer)
                        supervisor_kick(world);
                break;
        case EVENT_SUPERVISOR_STARTS:
                supervisor_start(world);
                break;
        }
}

const char *schedule_run(struct world *world, uint64_t seed, plan_function decide, bool trace)
{
        enum helper_mistake mistake = world->mistake;
        struct event event;

        world_init(world, seed, decide, trace);
        world->mistake = mistake;
        begin(world);
        while (!world->broken && world_next(world, &event)) {
                happen(world, &event);
                if (world->calm && world->now > world->calm_at + CONVERGES_WITHIN) {
                        if (world->now - world->supervisor.rested_at > LOOKS_AGAIN_WITHIN
                                && world->record.exists && !is_gone_for_good(world))
                                world_break(world, "it does not come to rest");
                        break;
                }
        }
        if (!world->broken)
                judge(world);
        return world->broken;
}
