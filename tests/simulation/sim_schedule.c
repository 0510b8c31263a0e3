/* SPDX-License-Identifier: MIT */
/* One schedule: what goes wrong and when. */
#include "sim.h"

#include <string.h>

enum {
        /* After the last fault: deadlines, limits of patience and back-off, one after the other. */
        CONVERGES_WITHIN = 900 * 1000 * 1000,
        LOOKS_AGAIN_WITHIN = 70 * 1000 * 1000,
};

/* A disabled device is not looked at again. */
static bool is_gone_for_good(const struct world *world)
{
        return world->ublkd.rested_at > 0 && world->wish.disabled;
}

/* ---- the administrator, bad luck ---- */

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

static void kill_ublkd(struct world *world)
{
        ublkd_die(world, "from outside");
}

/* Its queues are taken from the worker, and it does not exit. Nothing reports that: ublkd finds it when it looks again. */
static void worker_may_stay(struct world *world, int holder)
{
        if (holder == NO_PROCESS || !world->processes[holder].alive || !world_chance(world, 400))
                return;
        TRACE(world, "worker %d: stays without its queues", holder);
        world->processes[holder].hung = true;
}

static void admin_acts(struct world *world, const char *name, int (*act)(struct world *world, int number))
{
        int number = world->database.exists ? world->database.record.number : -1, holder;

        if (number < 0 || world->disks[number].foreign)
                return;
        TRACE(world, "administrator: %s %d", name, number);
        holder = world->disks[number].holder;
        if (act(world, number) == 0)
                worker_may_stay(world, holder);
}

static void admin_stops(struct world *world)
{
        admin_acts(world, "STOP_DEV", kernel_stop);
}

static void admin_deletes(struct world *world)
{
        admin_acts(world, "DEL_DEV", kernel_delete);
}

static void backend_changes(struct world *world)
{
        world->backend_broken = !world->backend_broken;
        TRACE(world, "the backend is %s", world->backend_broken ? "broken" : "good");
}

static void command_fails_from_now_on(struct world *world)
{
        world->failing = (int)world_random(world, _COMMAND_MAX + 1) - 1;
        TRACE(world, "kernel: command %d fails from now on", world->failing);
}

static void block_device_is_opened(struct world *world)
{
        int number = world->database.exists ? world->database.record.number : -1;

        if (number < 0 || !world->disks[number].exists || world->disks[number].state != KERNEL_STATE_LIVE)
                return;
        kernel_open_block_device(world, number);
}

/* A worker of ours may have it open. */
static void foreign_goes(struct world *world, int number)
{
        if (world->disks[number].holder == NO_PROCESS)
                world->disks[number].exists = false;
        else
                (void)kernel_delete(world, number);
}

static void foreign_comes_or_goes(struct world *world)
{
        int number = (int)world_random(world, 3); /* the others stay free */
        struct kernel_disk *disk = &world->disks[number];

        if (!disk->exists)
                *disk = (struct kernel_disk){.exists = true,
                        .foreign = true,
                        .instance = ++world->instances,
                        .cookie = 1, /* of no uid */
                        .state = KERNEL_STATE_LIVE,
                        .holder = NO_PROCESS};
        else if (disk->foreign)
                foreign_goes(world, number);
        TRACE(world, "foreign: disk %d %s", number,
                disk->exists ? disk->foreign ? "comes" : "is ours" : "goes");
}

/* Another file is at the path, or none; or the one that was there. */
static void path_leads_elsewhere(struct world *world)
{
        world->path = (int)world_random(world, STORES + 1) - 1;
        TRACE(world, "the path leads to store %d", world->path);
}

/* All but the database is gone. */
static void machine_reboots(struct world *world)
{
        if (!world_chance(world, 300))
                return;
        ublkd_die(world, "by a reboot");
        TRACE(world, "the machine reboots");
        for (int i = 0; i < world->process_count; i++)
                world->processes[i].alive = false;
        for (int i = 0; i < NUMBERS; i++)
                world->disks[i] = (struct kernel_disk){.holder = NO_PROCESS};
        memset(world->commands, 0, sizeof(world->commands));
        disk_reboot(world);
        world->boot++;
        world->was_live = false;
}

static const struct {
        unsigned weight;
        void (*happen)(struct world *world);
} faults[] = {
        {8, kill_worker              },
        {6, kill_ublkd               },
        {2, hang_worker              },
        {2, admin_stops              },
        {2, admin_deletes            },
        {2, backend_changes          },
        {2, path_leads_elsewhere     },
        {2, block_device_is_opened   },
        {2, command_fails_from_now_on},
        {2, foreign_comes_or_goes    },
        {1, machine_reboots          },
        {1, user_replaces            },
        {2, user_toggles             },
        {1, user_stops_or_starts     },
        {1, user_deletes             },
        {2, user_creates             },
        {3, user_recovers            },
        {3, user_restarts            },
        {1, user_tries_again         },
        {3, user_grows               },
        {2, user_changes_trigger     },
        {2, user_changes_patience    },
        {2, user_accepts_store       },
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

/* The store of a disk is where its record says that it is. */
static void restore_path(struct world *world)
{
        const struct database *database = &world->database;
        int store = database->exists ? store_of_record(world, &database->record) : NO_STORE;

        if (store != NO_STORE)
                world->path = store;
        else if (world->path == NO_STORE)
                world->path = 0;
}

static void calm_down(struct world *world)
{
        int number = world->database.exists ? world->database.record.number : -1;

        TRACE(world, "calm");
        world->calm = true;
        world->calm_at = world->now;
        world->backend_broken = false;
        world->failing = -1;
        restore_path(world);
        /* a foreign disk may keep a number of ours for good */
        if (number >= 0 && world->disks[number].exists && world->disks[number].foreign)
                foreign_goes(world, number);
}

static void begin(struct world *world)
{
        static const uint64_t gaps[] = {300, 3 * MS, 30 * MS, 300 * MS, 3 * SECOND, 30 * SECOND};

        world->failing = -1;
        world->boot = 1;
        world->refuses_second_begin = world_chance(world, 500);
        world->notices_early = world_chance(world, 500);
        world->slow_backend = world_chance(world, 200);
        world->old_workers = world_chance(world, 100);
        world->listed = world_chance(world, 300);
        world->place = world->listed ? world_random(world, PLACES) : 0;
        world->full_sockets = world_chance(world, 200);
        world->can_try_stop = world_chance(world, 500);
        world->can_grow = world_chance(world, 500);
        world->can_quiesce = world_chance(world, 500);
        world->keeps_descriptors = world_chance(world, 500);
        world->bad_luck = (unsigned[]){0, 5, 20, 60}[world_random(world, 4)];
        world->fault_gap = gaps[world_random(world, 6)];
        world->faults_left = (unsigned)world_random(world, 16);
        world->wish = (struct wish){
                .manual = world_chance(world, 250),
                .size = 1,
                .recovery = (enum disk_recovery)world_random(world, _RECOVERY_MAX),
                .replays = world_chance(world, 500),
                .fixed_number = world_chance(world, 300),
                .patience = world_chance(world, 100) ? (unsigned)world_random(world, 5) : 0,
        };
        for (int i = 0; i < NUMBERS; i++)
                world->disks[i].holder = NO_PROCESS;
        if (world_chance(world, 300))
                foreign_comes_or_goes(world);
        world_at(world, world->now, EVENT_UBLKD_STARTS, 0, 0, 0);
        world_at(world, world->now + world_random(world, 20 * MS), EVENT_FAULT, 0, 0, 0);
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
                process_receive(
                        world, event->a, (enum message)(event->b & 0xf), (unsigned)event->b >> 8, event->c);
                break;
        case EVENT_TO_UBLKD:
                if (world->ublkd.alive && world->ublkd.incarnation == event->c)
                        seam_worker_receives(world, event->a, (enum message)(event->b & 0xf),
                                (enum process_stage)(event->b >> 4 & 0xf), (unsigned)event->b >> 8);
                break;
        case EVENT_DEATH_SEEN:
                seam_worker_dies(world, event->a);
                break;
        case EVENT_STATE_FOLLOWS:
                kernel_state_follows(world, event->a);
                break;
        case EVENT_RELEASED:
                kernel_released(world, event->a);
                break;
        case EVENT_OPENER_CLOSES:
                kernel_close_block_device(world, event->a, event->c, event->b);
                break;
        case EVENT_STRANGER:
                kernel_disk_is_replaced(world, event->a, event->c);
                break;
        case EVENT_REMOVAL:
                user_removes(world, false);
                break;
        case EVENT_SOURCE:
                seam_event_fires(world, event);
                break;
        case EVENT_ANSWER:
                seam_question_answered(world, event);
                break;
        case EVENT_CONTROL:
                ublkd_control_comes(world, event->c);
                break;
        case EVENT_UBLKD_STARTS:
                ublkd_start(world);
                break;
        }
}

static void run(struct world *world)
{
        struct event event;

        while (!world->broken && world_next(world, &event)) {
                happen(world, &event);
                if (!world->ublkd.alive)
                        ublkd_bury(world);
                if (world->calm && world->now > world->calm_at + CONVERGES_WITHIN) {
                        if (world->now - world->ublkd.rested_at > LOOKS_AGAIN_WITHIN && world->database.exists
                                && !is_gone_for_good(world))
                                world_break(world, "it does not come to rest");
                        break;
                }
        }
        if (!world->broken)
                judge(world);
}

const char *schedule_run(struct world *world, uint64_t seed, plan_function decide, bool trace)
{
        enum helper_mistake mistake = world->mistake;
        void (*on_facts)(const struct plan_facts *) = world->on_facts;

        world_init(world, seed, decide, trace);
        world->mistake = mistake;
        world->on_facts = on_facts;
        begin(world);
        run(world);
        world->ublkd.alive = false; /* what it does at its end has no effect */
        ublkd_bury(world);
        disk_drop_all(world);
        return world->broken;
}
