/* SPDX-License-Identifier: MIT */
/* What must be true at the end of a schedule, long after the last thing went wrong. */
#include "sim.h"

#include "ublkd/model/device_cookie.h"

static int our_disks(const struct world *world, int *ret_number)
{
        int count = 0;

        for (int i = 0; i < NUMBERS; i++)
                if (world->disks[i].exists && !world->disks[i].foreign) {
                        *ret_number = i;
                        count++;
                }
        return count;
}

/* A worker that hangs before GO and whose socket no ublkd can reach: not there yet when its ublkd died, or
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
                if (world->processes[i].alive && !world->processes[i].preflight
                        && !is_out_of_reach(world, i)) {
                        *ret_worker = i;
                        count++;
                }
        return count;
}

/* One that hangs with its queues in hand says nothing about it, nor one that hangs before it leaves a disk whose queues
 * the driver has taken unnoticed. What finds such workers (device_progress.c) is not simulated. */
static bool is_serving(const struct process *process, const struct kernel_disk *disk)
{
        if (process->hung && process->stage == PROCESS_LEAVING)
                return disk->unnoticed;
        return process->stage == PROCESS_SERVING || (process->stage == PROCESS_READY && process->hung);
}

/* Of a disk that is live, with one worker. */
static void judge_record(struct world *world, const struct device_record *record)
{
        bool manual = record->spec->options.recovery.trigger == TRIGGER_MANUAL;

        if (record->recover_requested || ublkd_is_held(record) != manual)
                world_break(world, "the record does not say that the disk is live");
        else if (record->status.phase != PHASE_LIVE)
                world_break(world, "a live device is not reported Live");
        else if (record->number < 0 || record->status.number != record->number)
                world_break(world, "a live device is reported with another number");
}

static bool has_right_size(
        const struct device_record *record, const struct kernel_disk *disk, const struct process *process)
{
        if (process->size * MIB < disk->size)
                return false;
        if (disk->size == record->spec->options.size || process->hung) /* that one cannot be asked */
                return true;
        /* The user took a growth back while it was made. A disk does not shrink; its status says so. */
        return disk->size <= disk->size_given_up * MIB && record->status.size == disk->size;
}

static void judge_live(struct world *world, const struct device_record *record)
{
        int number = -1, worker = NO_PROCESS;
        const struct process *process;
        const struct kernel_disk *disk;

        if (our_disks(world, &number) != 1 || living_workers(world, &worker) != 1) {
                world_break(world, "there is not exactly one disk with one worker");
                return;
        }
        disk = &world->disks[number];
        process = &world->processes[worker];
        if (disk->state != KERNEL_STATE_LIVE || disk->deleted || number != record->number
                || disk->cookie != device_cookie(record->uid, record->epoch))
                world_break(world, "the disk is not live, or not the right one");
        else if (disk->holder != worker || !is_serving(process, disk) || !disk->fetched_all)
                world_break(world, "the disk is not served");
        else if (process->epoch != record->epoch)
                world_break(world, "the disk is served by a worker of an old spec");
        else if (process->restart != record->restart && world->refused_restart != record->restart)
                world_break(world, "the disk is served by a worker that was to be replaced");
        else if (!has_right_size(record, disk, process))
                world_break(world, "the disk has not the right size");
        else if (!process->stand_in.proc)
                world_break(world, "ublkd does not know the worker");
        else
                judge_record(world, record);
}

static void judge_gone(struct world *world, const struct device_record *record)
{
        int number, worker;

        if (our_disks(world, &number) != 0)
                world_break(world, "a disk is left behind");
        if (living_workers(world, &worker) != 0)
                world_break(world, "a worker is left behind");
        if (record && record->deleting)
                world_break(world, "a deleted record is left behind");
        if (record && record->status.phase != PHASE_DISABLED)
                world_break(world, "a disabled device is not reported so");
        for (int i = 0; i < FILES; i++)
                if (world->files[i].text)
                        world_break(world, "a file is left behind in the runtime directory");
        if (world->claims.uid[0] != '\0')
                world_break(world, "a claim on a store is left behind");
        if (world->kept.uid[0] != '\0')
                world_break(world, "a descriptor of a store is kept for no disk");
}

static void judge_held(struct world *world, const struct device_record *record)
{
        int number = -1, worker;

        if (record->recover_requested || !world->was_live)
                world_break(world, "a disk that ought to be live is not");
        if (living_workers(world, &worker) != 0)
                world_break(world, "a worker serves a held disk");
        if (our_disks(world, &number) > 1)
                world_break(world, "a disk is left behind");
        if (number >= 0 && world->disks[number].state == KERNEL_STATE_QUIESCED
                && record->spec->options.recovery.give_up_after > 0)
                world_break(world, "I/O waits for longer than the user allows");
        if (record->status.phase == PHASE_LIVE)
                world_break(world, "a held device is reported Live");
}

/* The record that ublkd has is the one that the next ublkd would find. */
static void judge_database(struct world *world, const struct device_record *record)
{
        const struct device_record *stored = &world->database.record;

        if (!record != !world->database.exists)
                world_break(world, "the database does not have the device that ublkd has");
        else if (record
                 && (record->epoch != stored->epoch || record->number != stored->number
                         || record->generation != stored->generation || record->restart != stored->restart))
                world_break(world, "the database has not the record that ublkd has");
}

void judge(struct world *world)
{
        const struct device_record *record = ublkd_record(world);
        int number = -1, worker;
        bool manual;

        if (!world->ublkd.alive || !world->ublkd.boot_pass_done) {
                world_break(world, "ublkd has not looked at every device");
                return;
        }
        judge_database(world, record);
        if (!record || record->deleting || !device_record_enabled(record)) {
                judge_gone(world, record);
                return;
        }
        manual = record->spec->options.recovery.trigger == TRIGGER_MANUAL;
        if (manual && living_workers(world, &worker) == 0
                && (our_disks(world, &number) == 0 || world->disks[number].unnoticed
                        || world->disks[number].state != KERNEL_STATE_LIVE))
                judge_held(world, record);
        else
                judge_live(world, record);
}
