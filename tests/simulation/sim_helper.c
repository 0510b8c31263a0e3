/* SPDX-License-Identifier: MIT */
/* How control commands come and go: through helper processes, as ublk_ctl_calls.c has them. One is active.
 * With a command that misses its deadline it is retired and killed; what was given up and changes a disk is
 * held until that helper is dead or answers after all, and no other command that changes the disk is sent
 * before. The last helper is kept until it has missed some deadlines in a row. */
#include "sim.h"

#include <errno.h>

enum {
        DEADLINE = 10 * 1000 * 1000,        /* of the calls of ublkd */
        LATE_EFFECT_MAX = 20 * 1000 * 1000, /* of a command that was given up */
        LAST_MISSES_MAX = 4,
};

static bool is_of_the_living(const struct world *world, const struct command *command)
{
        return world->ublkd.alive && command->incarnation == world->ublkd.incarnation;
}

/* It went through the helper that is in this slot now. */
static bool is_of(const struct world *world, const struct command *command, int helper)
{
        return command->used && is_of_the_living(world, command) && command->helper == helper
               && command->helper_life == world->ublkd.helpers[helper].life;
}

/* NULL: the helper, or its ublkd, is gone. */
static struct helper *helper_of(struct world *world, const struct command *command)
{
        return is_of_the_living(world, command) && is_of(world, command, command->helper)
                       ? &world->ublkd.helpers[command->helper]
                       : NULL;
}

static bool changes(const struct command *command)
{
        return command->type != COMMAND_GET_INFO && command->type != COMMAND_GET_AFFINITY;
}

static void command_event(struct world *world, uint64_t delay, enum event_kind kind, int index)
{
        world_at(world, world->now + delay, kind, index, 0, world->commands[index].serial);
}

/* The command gets no answer any more, and no caller waits for one. */
static void drop_if_over(struct command *command)
{
        if (command->effective && command->given_up && !command->held)
                command->used = false;
}

/* ---- what was given up ---- */

static bool is_held(const struct world *world, int number)
{
        for (int i = 0; i < COMMANDS; i++) {
                const struct command *command = &world->commands[i];

                if (command->used && command->held && command->number == number
                        && is_of_the_living(world, command))
                        return true;
        }
        return false;
}

static void release(struct world *world, struct command *command)
{
        if (!command->held || world->mistake == NEVER_RELEASES)
                return;
        command->held = false;
        TRACE(world, "helper %d: command %d on %d is released", command->helper, command->type,
                command->number);
        drop_if_over(command);
        if (is_of_the_living(world, command))
                seam_ctl_released(world, command->number);
}

/* ---- helpers ---- */

static int find_helper(const struct world *world, enum helper_state state)
{
        for (int i = 0; i < HELPERS; i++)
                if (world->ublkd.helpers[i].state == state)
                        return i;
        return NO_PROCESS;
}

static bool is_in_driver(const struct world *world, int helper)
{
        for (int i = 0; i < COMMANDS; i++) {
                const struct command *command = &world->commands[i];

                if (is_of(world, command, helper) && !command->effective)
                        return true;
        }
        return false;
}

/* A process exits when the driver has returned from all of its commands. */
static void helper_ends_if_it_can(struct world *world, int index)
{
        struct helper *helper = &world->ublkd.helpers[index];

        if (!helper->killed || helper->death_seen || is_in_driver(world, index))
                return;
        helper->death_seen = true;
        world_at(world, world->now + world_between(world, 1, 10 * MS), EVENT_HELPER_DEATH, index,
                (int)world->ublkd.incarnation, helper->life);
}

/* SIGKILL interrupts what can be interrupted: it is done at once or never. */
static void interrupt_command(struct world *world, struct command *command)
{
        if (command->effective || command->stubborn)
                return;
        if (!command->unread && command->fate != FATE_HANGS && command->fate != FATE_FAILS
                && world_chance(world, 500))
                (void)kernel_execute(world, command);
        command->effective = true;
        command->result = -EINTR;
        drop_if_over(command);
}

static void helper_kill(struct world *world, int index)
{
        struct helper *helper = &world->ublkd.helpers[index];

        helper->killed = true;
        for (int i = 0; i < COMMANDS; i++) {
                struct command *command = &world->commands[i];

                if (!is_of(world, command, index))
                        continue;
                interrupt_command(world, command);
                if (world->mistake == RELEASES_WHEN_IT_KILLS && command->used)
                        release(world, command);
        }
        helper_ends_if_it_can(world, index);
}

static void helper_death(struct world *world, int index, unsigned incarnation, unsigned life)
{
        struct ublkd *ublkd = &world->ublkd;
        struct helper *helper = &ublkd->helpers[index];

        if (!ublkd->alive || ublkd->incarnation != incarnation || helper->life != life)
                return;
        TRACE(world, "helper %d: is dead", index);
        if (world->mistake != KEEPS_THE_SLOT_OF_THE_DEAD)
                helper->state = HELPER_NONE;
        else
                helper->state = HELPER_DYING;
        for (int i = 0; i < COMMANDS; i++) {
                struct command *command = &world->commands[i], copy;

                if (!is_of(world, command, index) || command->helper_life != life)
                        continue;
                release(world, command); /* after which another one may be in its place, or in ours */
                if (!is_of(world, command, index) || command->helper_life != life || command->given_up
                        || command->answered || world->mistake == SWALLOWS_CALLS_OF_THE_DEAD)
                        continue;
                command->result = -ECONNRESET; /* its result is unknown */
                copy = *command;
                command->used = false;
                seam_ctl_result(world, &copy);
        }
}

static int helper_start(struct world *world)
{
        int index = find_helper(world, HELPER_NONE);
        struct helper *helper;

        if (index == NO_PROCESS)
                return NO_PROCESS;
        helper = &world->ublkd.helpers[index];
        *helper = (struct helper){.state = HELPER_ACTIVE, .life = helper->life + 1};
        return index;
}

/* ---- commands ---- */

static int draw_fate(struct world *world)
{
        static const int fates[] = {FATE_INTERRUPTED, FATE_INTERRUPTED_EFFECTIVE, FATE_HANGS,
                FATE_HANGS_EFFECTIVE, FATE_FAILS, FATE_FAILS};

        return world_bad_luck(world) ? fates[world_random(world, sizeof(fates) / sizeof(fates[0]))]
                                     : FATE_NORMAL;
}

static int free_slot(struct world *world)
{
        for (int i = 0; i < COMMANDS; i++)
                if (!world->commands[i].used)
                        return i;
        world_break(world, "commands pile up");
        return 0;
}

/* Only what is over, or can have no effect, may be followed. */
static void judge_order(struct world *world, const struct command *next)
{
        for (int i = 0; changes(next) && i < COMMANDS; i++) {
                const struct command *command = &world->commands[i];

                if (command->used && !command->effective && changes(command)
                        && command->number == next->number && is_of_the_living(world, command))
                        world_break(world, "a command overtakes one that may yet take effect");
        }
}

static uint64_t delay_of(struct world *world, const struct command *command)
{
        if (command->fate == FATE_HANGS_EFFECTIVE)
                return world_between(world, 1, DEADLINE + LATE_EFFECT_MAX);
        return command->fate == FATE_HANGS ? DEADLINE + LATE_EFFECT_MAX : world_between(world, 5, 200);
}

static void send_command(struct world *world, int helper, const struct command *command)
{
        int index = free_slot(world);
        struct command *slot = &world->commands[index];

        *slot = *command;
        slot->used = true;
        slot->serial = ++world->command_serial;
        slot->helper = helper;
        slot->helper_life = world->ublkd.helpers[helper].life;
        slot->issued_at = world->now;
        slot->fate = (int)slot->type == world->failing ? FATE_FAILS : draw_fate(world);
        slot->stubborn = world_chance(world, 300);
        slot->unread = world->ublkd.helpers[helper].mute || world->ublkd.helpers[helper].killed;
        if (slot->unread)
                slot->effective = true; /* it never gets there */
        else
                command_event(world, delay_of(world, slot), EVENT_COMMAND_EFFECT, index);
        command_event(world, DEADLINE, EVENT_COMMAND_DEADLINE, index);
}

int helper_submit(struct world *world, const struct command *command)
{
        int helper;

        if (changes(command) && is_held(world, command->number))
                return -EALREADY;
        helper = find_helper(world, HELPER_ACTIVE);
        if (helper == NO_PROCESS)
                helper = helper_start(world);
        if (helper == NO_PROCESS)
                return -EAGAIN;
        judge_order(world, command);
        send_command(world, helper, command);
        return 0;
}

void helper_cancel(struct world *world, const struct ctl_call *call)
{
        for (int i = 0; i < COMMANDS; i++)
                if (world->commands[i].used && world->commands[i].call == call)
                        world->commands[i].call = NULL;
}

static void finish(struct world *world, int index, int result)
{
        struct command *command = &world->commands[index];
        const struct helper *helper = helper_of(world, command);
        int of = command->helper;
        bool silent = command->fate == FATE_HANGS_EFFECTIVE || command->fate == FATE_HANGS
                      || (helper && (helper->mute || helper->killed));

        command->effective = true;
        command->result = result;
        if (command->given_up) {
                if (helper && !helper->mute && !helper->killed)
                        command_event(world, world_between(world, 1, 100), EVENT_COMMAND_LATE, index);
                drop_if_over(command);
        } else if (!silent) { /* else the deadline answers for it */
                command->answered = true;
                command_event(world, world_between(world, 1, 100), EVENT_COMMAND_RESULT, index);
        }
        if (helper)
                helper_ends_if_it_can(world, of);
}

static void command_effect(struct world *world, int index)
{
        struct command *command = &world->commands[index];
        uint64_t age = world->now - command->issued_at;
        int r = 0;

        if (command->effective)
                return;
        if (command->fate == FATE_FAILS)
                r = -EIO;
        else if (command->fate == FATE_INTERRUPTED)
                r = -EINTR;
        else if (command->fate != FATE_HANGS) {
                r = kernel_execute(world, command);
                if (r == KERNEL_BLOCKS && age < DEADLINE + LATE_EFFECT_MAX) {
                        command_event(world, 200 + (age < SECOND ? age / 2 : SECOND / 2),
                                EVENT_COMMAND_EFFECT, index);
                        return;
                }
                TRACE(world, "kernel: command %d on %d → %d", command->type, command->number, r);
                if (command->fate == FATE_INTERRUPTED_EFFECTIVE)
                        r = -EINTR;
        }
        finish(world, index, r == KERNEL_BLOCKS ? -EINTR : r);
}

static void retire(struct world *world, int index)
{
        struct helper *helper = &world->ublkd.helpers[index];

        if (helper->state != HELPER_ACTIVE || world->mistake == KEEPS_A_HELPER_THAT_HANGS
                || (find_helper(world, HELPER_NONE) == NO_PROCESS && ++helper->misses < LAST_MISSES_MAX))
                return;
        TRACE(world, "helper %d: is given up", index);
        helper->state = HELPER_RETIRED; /* and killed at once: no other call is under way */
        if (world->mistake == RETIRES_AND_DOES_NOT_KILL)
                return;
        helper->state = HELPER_DYING;
        helper_kill(world, index);
}

static void command_deadline(struct world *world, int index)
{
        struct command *command = &world->commands[index], copy;
        const struct helper *helper = helper_of(world, command);

        if (command->answered || command->given_up || world->mistake == HAS_NO_DEADLINE)
                return;
        command->given_up = true;
        command->held = helper && changes(command) && world->mistake != DROPS_WHAT_WAS_GIVEN_UP;
        command->result = -ETIMEDOUT;
        TRACE(world, "helper %d: command %d on %d did not come back", command->helper, command->type,
                command->number);
        copy = *command; /* its place is free once it is over */
        command->call = NULL;
        if (helper)
                retire(world, command->helper);
        if (command->used)
                drop_if_over(command);
        seam_ctl_result(world, &copy);
}

static void command_result(struct world *world, int index)
{
        struct command command = world->commands[index];
        struct helper *helper = helper_of(world, &command);

        world->commands[index].used = false; /* its place is free for what follows from it */
        if (helper)
                helper->misses = 0;
        seam_ctl_result(world, &command);
}

static void command_late(struct world *world, int index)
{
        struct helper *helper = helper_of(world, &world->commands[index]);

        if (helper)
                helper->misses = 0;
        release(world, &world->commands[index]);
}

void helper_event(struct world *world, const struct event *event)
{
        const struct command *command = &world->commands[event->a];

        if (event->kind == EVENT_HELPER_DEATH) {
                helper_death(world, event->a, (unsigned)event->b, event->c);
                return;
        }
        if (!command->used || command->serial != event->c)
                return;
        switch (event->kind) {
        case EVENT_COMMAND_EFFECT:
                command_effect(world, event->a);
                break;
        case EVENT_COMMAND_RESULT:
                command_result(world, event->a);
                break;
        case EVENT_COMMAND_DEADLINE:
                command_deadline(world, event->a);
                break;
        default:
                command_late(world, event->a);
        }
}

/* ---- what befalls them ---- */

/* They die with it: what is not done yet is done at once or never. */
void helper_drop_ublkd(struct world *world, unsigned incarnation)
{
        for (int i = 0; i < COMMANDS; i++) {
                struct command *command = &world->commands[i];

                if (!command->used || command->incarnation != incarnation)
                        continue;
                command->held = false;
                drop_if_over(command);
                if (command->effective)
                        continue;
                /* A disk that comes after the next ublkd has looked cannot be known to it,
                 * nor a size. */
                if (world_chance(world, 500)
                        || ((command->type == COMMAND_ADD || command->type == COMMAND_UPDATE_SIZE)
                                && command->fate != FATE_NORMAL))
                        command->fate = FATE_INTERRUPTED;
        }
}

void helper_falls_silent(struct world *world)
{
        int index = find_helper(world, HELPER_ACTIVE);

        if (!world->ublkd.alive || index == NO_PROCESS)
                return;
        TRACE(world, "helper %d: falls silent", index);
        world->ublkd.helpers[index].mute = true;
}

void helper_is_killed(struct world *world)
{
        int index = find_helper(world, HELPER_ACTIVE);

        if (!world->ublkd.alive || index == NO_PROCESS || world->ublkd.helpers[index].killed)
                return;
        TRACE(world, "helper %d: is killed from outside", index);
        helper_kill(world, index);
}
