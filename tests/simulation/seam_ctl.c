/* SPDX-License-Identifier: MIT */
/* In place of ublkd/driver/ublk_ctl.h: control commands go to the simulated helpers. */
#include "sim.h"

#include <errno.h>
#include <stdlib.h>

enum { FIRST_PID = 1000 }; /* as in seam_worker.c */

struct ublk_ctl_call {
        ublk_ctl_done done;
        void *userdata;
};

/* ---- flags ---- */

uint64_t ublk_ctl_flags(enum kernel_recovery recovery)
{
        static const uint64_t flags[_KERNEL_RECOVERY_MAX] = {
                [KERNEL_RECOVERY_QUEUE] = FEATURE_RECOVERY,
                [KERNEL_RECOVERY_REISSUE] = FEATURE_RECOVERY | FEATURE_REISSUE,
                [KERNEL_RECOVERY_FAIL] = FEATURE_RECOVERY | FEATURE_FAIL_IO,
        };

        return flags[recovery];
}

uint64_t ublk_ctl_extra_flags(
        enum kernel_recovery recovery, bool batch __attribute__((unused)), uint64_t features)
{
        return features & (FEATURE_GROW | (recovery != KERNEL_RECOVERY_NONE ? FEATURE_QUIESCE : 0));
}

const char *ublk_ctl_missing(uint64_t wanted, uint64_t got)
{
        return wanted & ~got ? "FEATURE" : NULL;
}

/* ---- rules ---- */

/* I/O that waits is failed only if the user said so or if nothing else can be done. */
static void judge_stop(struct world *world)
{
        const struct disk *disk = &world->ublkd.seen;
        enum plan_want want = world->ublkd.facts.want;

        if (want == WANT_ABSENT || want == WANT_GIVEN_UP)
                return;
        if ((disk->state == DISK_QUIESCED || disk->state == DISK_FAIL_IO) && !disk->spoilt
                && disk->refusals < ATTEMPT_REFUSALS)
                world_break(world, "a disk that could be recovered is stopped");
        if (disk->state == DISK_LIVE && disk->holder != NO_PROCESS && world->processes[disk->holder].alive
                && !world->processes[disk->holder].hung)
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
static bool is_in_place(const struct disk *disk, enum command_type type)
{
        switch (type) {
        case COMMAND_SET_PARAMS:
        case COMMAND_START:
        case COMMAND_DEL:
                return disk->state == DISK_DEAD;
        case COMMAND_BEGIN_RECOVERY: /* a live disk has lost its worker, and does not know it yet */
                return disk->state != DISK_DEAD;
        case COMMAND_END_RECOVERY:
                return disk->state == DISK_QUIESCED || disk->state == DISK_FAIL_IO;
        case COMMAND_QUIESCE:
        case COMMAND_UPDATE_SIZE:
                return disk->state == DISK_LIVE;
        default:
                return true;
        }
}

static void judge_command(struct world *world, const struct command *command)
{
        const struct device_record *record = ublkd_record(world);
        const struct disk *disk = &world->disks[command->number];

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
                && !record->forced && disk->exclusive > 0 && world->ublkd.seen.state == DISK_LIVE
                && world->ublkd.facts.worker == PLAN_WORKER_SERVING)
                world_break(world, "a disk in use is stopped without force");
}

/* ---- there ---- */

/* The disk that a command is meant for is the one that was seen last. */
static int submit(struct command command, ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret)
{
        struct world *world = sim;
        struct ublk_ctl_call *call;
        int r;

        if (!ublkd_acts(world) || ublkd_dies_here(world, "before a command"))
                return -ECONNRESET;
        if (command.number < 0 || command.number >= NUMBERS) {
                world_break(world, "a disk that has no number is handled");
                return -EINVAL;
        }
        command.instance = world->ublkd.seen.instance;
        command.incarnation = world->ublkd.incarnation;
        judge_command(world, &command);
        call = calloc(1, sizeof(*call));
        if (!call)
                return -ENOMEM;
        *call = (struct ublk_ctl_call){.done = done, .userdata = userdata};
        command.call = call;
        r = helper_submit(world, &command);
        if (r < 0) {
                free(call);
                return r;
        }
        if (ret)
                *ret = call;
        (void)ublkd_dies_here(world, "having sent a command");
        return 0;
}

#define COMMAND(name, what)                                                                                  \
        int ublk_ctl_##name(struct ublk_ctl *ctl, int number, ublk_ctl_done done, void *userdata,            \
                struct ublk_ctl_call **ret)                                                                  \
        {                                                                                                    \
                (void)ctl;                                                                                   \
                return submit((struct command){.type = (what), .number = number}, done, userdata, ret);      \
        }

COMMAND(get_info, COMMAND_GET_INFO)
COMMAND(stop, COMMAND_STOP)
COMMAND(try_stop, COMMAND_TRY_STOP)
COMMAND(stop_unheld, COMMAND_STOP_UNHELD)
COMMAND(quiesce, COMMAND_QUIESCE)
COMMAND(del, COMMAND_DEL)

/* For whom, which the driver does not hear: the worker that ublkd has. */
static int current_worker(const struct world *world)
{
        for (int i = world->process_count - 1; i >= 0; i--)
                if (world->processes[i].stand_in.proc && !world->processes[i].preflight)
                        return i;
        return NO_PROCESS;
}

int ublk_ctl_begin_recovery(
        struct ublk_ctl *ctl, int number, ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret)
{
        (void)ctl;
        return submit(
                (struct command){
                        .type = COMMAND_BEGIN_RECOVERY, .number = number, .worker = current_worker(sim)},
                done, userdata, ret);
}

int ublk_ctl_get_affinity(struct ublk_ctl *ctl, int number, uint16_t queue, ublk_ctl_done done,
        void *userdata, struct ublk_ctl_call **ret)
{
        (void)ctl, (void)queue;
        return submit((struct command){.type = COMMAND_GET_AFFINITY, .number = number}, done, userdata, ret);
}

int ublk_ctl_add(struct ublk_ctl *ctl, const struct kernel_device_request *request, ublk_ctl_done done,
        void *userdata, struct ublk_ctl_call **ret)
{
        (void)ctl;
        return submit((struct command){.type = COMMAND_ADD,
                              .number = request->number,
                              .cookie = request->cookie,
                              .flags = request->flags},
                done, userdata, ret);
}

int ublk_ctl_set_params(struct ublk_ctl *ctl, int number, const struct disk_params *params,
        ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret)
{
        (void)ctl;
        return submit(
                (struct command){
                        .type = COMMAND_SET_PARAMS, .number = number, .size = (unsigned)(params->size / MIB)},
                done, userdata, ret);
}

int ublk_ctl_update_size(struct ublk_ctl *ctl, int number, uint64_t size, ublk_ctl_done done, void *userdata,
        struct ublk_ctl_call **ret)
{
        (void)ctl;
        return submit(
                (struct command){
                        .type = COMMAND_UPDATE_SIZE, .number = number, .size = (unsigned)(size / MIB)},
                done, userdata, ret);
}

int ublk_ctl_start(struct ublk_ctl *ctl, int number, pid_t worker, ublk_ctl_done done, void *userdata,
        struct ublk_ctl_call **ret)
{
        (void)ctl;
        return submit((struct command){.type = COMMAND_START, .number = number, .worker = worker - FIRST_PID},
                done, userdata, ret);
}

int ublk_ctl_end_recovery(struct ublk_ctl *ctl, int number, pid_t worker, ublk_ctl_done done, void *userdata,
        struct ublk_ctl_call **ret)
{
        (void)ctl;
        return submit(
                (struct command){
                        .type = COMMAND_END_RECOVERY, .number = number, .worker = worker - FIRST_PID},
                done, userdata, ret);
}

void ublk_ctl_call_cancel(struct ublk_ctl_call *call)
{
        helper_cancel(sim, call);
        free(call);
}

/* ---- and back ---- */

static struct kernel_device device_of(int number, const struct disk *disk)
{
        static const enum kernel_state states[] = {
                [DISK_DEAD] = KERNEL_STATE_DEAD,
                [DISK_LIVE] = KERNEL_STATE_LIVE,
                [DISK_QUIESCED] = KERNEL_STATE_QUIESCED,
                [DISK_FAIL_IO] = KERNEL_STATE_FAIL_IO,
        };

        return (struct kernel_device){
                .number = number,
                .state = states[disk->state],
                .cookie = disk->cookie,
                .flags = disk->flags,
                .queues = 1,
                .queue_depth = 16,
                .max_io_size = 1 << 20,
                .queue_cpus = {1},
        };
}

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
        struct ublk_ctl_call *call = command->call;
        struct kernel_device device = device_of(command->number, &command->info);
        int r = command->result;
        bool tells = is_question(command->type) || command->type == COMMAND_ADD;

        if (!ublkd_acts(world) || command->incarnation != world->ublkd.incarnation || !call
                || ublkd_dies_here(world, "between a command and the note of it"))
                return;
        if (command->type == COMMAND_GET_INFO && r == 0) {
                note_look(world, command);
                r = command->info.exists ? 0 : -ENODEV;
        }
        if ((command->type == COMMAND_START || command->type == COMMAND_END_RECOVERY) && r == 0)
                world->ublkd.seen.state = DISK_LIVE;
        call->done(call->userdata, r, r == 0 && tells ? &device : NULL);
        free(call);
}

void ublk_ctl_on_released(struct ublk_ctl *ctl, ublk_ctl_released on_released, void *userdata)
{
        (void)ctl;
        sim->ublkd.released = on_released;
        sim->ublkd.released_userdata = userdata;
}

void seam_ctl_released(struct world *world, int number)
{
        if (ublkd_acts(world) && world->ublkd.released)
                world->ublkd.released(world->ublkd.released_userdata, number);
}
