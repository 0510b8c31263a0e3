/* SPDX-License-Identifier: MIT */
/* Control commands of ublkd go to the simulated helpers, and their results come back. The rules of which command
 * may be sent when. */
#include "sim.h"

#include <errno.h>

/* ---- rules ---- */

/* I/O that waits is failed only if the user asked for it or if nothing else can be done. */
static void judge_stop(struct world *world)
{
        const struct kernel_disk *disk = &world->ublkd.seen;
        enum plan_want want = world->ublkd.facts.want;

        if (want == WANT_ABSENT || want == WANT_GIVEN_UP)
                return;
        if ((disk->state == KERNEL_STATE_QUIESCED || disk->state == KERNEL_STATE_FAIL_IO) && !disk->spoilt
                && disk->refusals < ATTEMPT_REFUSALS)
                world_break(world, "a disk that could be recovered is stopped");
        if (disk->state == KERNEL_STATE_LIVE && disk->holder != NO_PROCESS
                && world->processes[disk->holder].alive && !world->processes[disk->holder].hung)
                world_break(world, "a disk that is served is stopped");
}

static bool is_stop(enum command_type type)
{
        return type == COMMAND_STOP || type == COMMAND_TRY_STOP || type == COMMAND_STOP_UNHELD;
}

static bool is_question(enum command_type type)
{
        return type == COMMAND_GET_INFO || type == COMMAND_GET_AFFINITY;
}

/* In which states the driver is asked for it: an answer that can only be a failure is not worth a question. */
static bool is_in_place(const struct kernel_disk *disk, enum command_type type)
{
        switch (type) {
        case COMMAND_SET_PARAMS:
        case COMMAND_START:
        case COMMAND_DEL:
                return disk->state == KERNEL_STATE_DEAD;
        case COMMAND_BEGIN_RECOVERY: /* a live disk has lost its worker, and does not know it yet */
                return disk->state != KERNEL_STATE_DEAD;
        case COMMAND_END_RECOVERY:
                return disk->state == KERNEL_STATE_QUIESCED || disk->state == KERNEL_STATE_FAIL_IO;
        case COMMAND_QUIESCE:
        case COMMAND_UPDATE_SIZE:
                return disk->state == KERNEL_STATE_LIVE;
        default:
                return true;
        }
}

/* A worker serves the disk, or was asked to make way for another one. */
static bool is_served(const struct world *world)
{
        int holder = world->ublkd.seen.holder;
        enum plan_worker worker = world->ublkd.facts.worker;

        return worker == PLAN_WORKER_SERVING
               || (worker == PLAN_WORKER_LEAVING && holder != NO_PROCESS && world->processes[holder].alive
                       && world->processes[holder].retires);
}

static void judge_command(struct world *world, const struct command *command)
{
        const struct device_record *record = ublkd_record(world);
        const struct kernel_disk *disk = &world->disks[command->number];

        if (is_question(command->type))
                return;
        ublkd_count(world, true);
        if (!record || record->number != command->number)
                world_break(world, "a disk of another number is handled");
        if (command->type != COMMAND_ADD && disk->exists && disk->foreign
                && disk->instance == command->instance)
                world_break(world, "a foreign disk is touched");
        if (is_stop(command->type))
                judge_stop(world);
        if (command->type != COMMAND_ADD && !world->ublkd.seen.exists)
                world_break(world, "a disk that there is not is handled");
        else if (!is_in_place(&world->ublkd.seen, command->type))
                world_break(world, "a command is sent to a disk that is not in the state for it");
        if ((command->type == COMMAND_QUIESCE || command->type == COMMAND_UPDATE_SIZE)
                && world->ublkd.facts.worker != PLAN_WORKER_SERVING)
                world_break(world, "what is asked of a disk needs a worker that serves it");
        if (command->type == COMMAND_STOP && world->database.exists && record && record->deleting
                && !record->forced && disk->exclusive > 0 && world->ublkd.seen.state == KERNEL_STATE_LIVE
                && is_served(world))
                world_break(world, "a disk in use is stopped without force");
}

/* ublk_ctl.c refuses a number that is none by itself. */
static void judge_number(int number)
{
        if (ublkd_acts(sim) && (number < 0 || number >= NUMBERS))
                world_break(sim, "a disk that has no number is handled");
}

int __real_ublk_ctl_get_info(
        struct ublk_ctl *ctl, int number, ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret);
int __wrap_ublk_ctl_get_info(
        struct ublk_ctl *ctl, int number, ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret);
int __wrap_ublk_ctl_get_info(
        struct ublk_ctl *ctl, int number, ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret)
{
        judge_number(number);
        return __real_ublk_ctl_get_info(ctl, number, done, userdata, ret);
}

int __real_ublk_ctl_add(struct ublk_ctl *ctl, const struct kernel_device_request *request, ublk_ctl_done done,
        void *userdata, struct ublk_ctl_call **ret);
int __wrap_ublk_ctl_add(struct ublk_ctl *ctl, const struct kernel_device_request *request, ublk_ctl_done done,
        void *userdata, struct ublk_ctl_call **ret);
int __wrap_ublk_ctl_add(struct ublk_ctl *ctl, const struct kernel_device_request *request, ublk_ctl_done done,
        void *userdata, struct ublk_ctl_call **ret)
{
        judge_number(request->number);
        return __real_ublk_ctl_add(ctl, request, done, userdata, ret);
}

/* ---- there ---- */

/* For whom, which the driver does not learn BEGIN_RECOVERY: the worker that ublkd has. */
static int current_worker(const struct world *world)
{
        for (int i = world->process_count - 1; i >= 0; i--)
                if (world->processes[i].stand_in.proc && !world->processes[i].preflight)
                        return i;
        return NO_PROCESS;
}

/* The disk that a command is meant for is the one that was seen last. */
int on_ctl_submitted(const struct ctl_wish *wish, struct ctl_call *call)
{
        struct world *world = sim;
        struct command command = {
                .type = wish->type,
                .number = wish->number,
                .worker = wish->type == COMMAND_BEGIN_RECOVERY ? current_worker(world)
                                                               : wish->worker - FIRST_PID,
                .request = wish->request,
                .size = (unsigned)(wish->size / MIB),
                .guarded = wish->guarded,
                .cookie = wish->cookie,
                .instance = world->ublkd.seen.instance,
                .incarnation = world->ublkd.incarnation,
                .call = call,
        };
        int r;

        if (!ublkd_acts(world) || ublkd_dies_here(world, "before a command"))
                return -ECONNRESET;
        judge_number(command.number);
        if (world->broken)
                return -EINVAL;
        judge_command(world, &command);
        r = helper_submit(world, &command);
        if (r >= 0 && command.type == COMMAND_BEGIN_RECOVERY) /* between the last look and the effect */
                kernel_may_be_replaced(world, command.number, 30, 200);
        if (r >= 0)
                (void)ublkd_dies_here(world, "having sent a command");
        return r < 0 ? r : 0;
}

void on_ctl_cancelled(struct ctl_call *call)
{
        helper_cancel(sim, call);
}

/* ---- and back ---- */

/* What the kernel says of our number is what is known of our disk. */
static void note_look(struct world *world, const struct command *command)
{
        const struct device_record *record = ublkd_record(world);

        if (!record || record->number != command->number)
                return;
        world->ublkd.seen = command->info;
        world->ublkd.looked = true;
}

void seam_ctl_result(struct world *world, const struct command *command)
{
        struct kernel_device device = kernel_disk_info(command->number, &command->info);
        int r = command->result;
        bool brings_device = is_question(command->type) || command->type == COMMAND_ADD;

        if (!ublkd_acts(world) || command->incarnation != world->ublkd.incarnation || !command->call
                || ublkd_dies_here(world, "between a command and the note of it"))
                return;
        device.server_pid = command->info.state == KERNEL_STATE_LIVE && command->info.holder != NO_PROCESS
                                    ? worker_stand_in_pid(command->info.holder)
                                    : -1;
        if (command->type == COMMAND_GET_INFO && r == 0) {
                note_look(world, command);
                r = command->info.exists ? 0 : -ENODEV;
        }
        if ((command->type == COMMAND_START || command->type == COMMAND_END_RECOVERY) && r == 0)
                world->ublkd.seen.state = KERNEL_STATE_LIVE;
        /* the driver refuses it for a live disk: what was seen is older */
        if (command->type == COMMAND_BEGIN_RECOVERY && r == 0 && world->ublkd.seen.state == KERNEL_STATE_LIVE)
                world->ublkd.seen.state = KERNEL_STATE_QUIESCED;
        ctl_stand_in_answers(command->call, r, r == 0 && brings_device ? &device : NULL);
}

void seam_ctl_released(struct world *world, int number)
{
        if (ublkd_acts(world))
                ctl_stand_in_releases(number);
}
