/* SPDX-License-Identifier: MIT */
/* Disks, and what control commands do to them, as the driver has it. */
#include "sim.h"

#include <errno.h>

static struct kernel_disk *find_disk(struct world *world, int number, unsigned instance)
{
        struct kernel_disk *disk = number >= 0 ? &world->disks[number] : NULL;

        return disk && disk->exists && disk->instance == instance ? disk : NULL;
}

uint64_t kernel_features(const struct world *world)
{
        return FEATURE_RECOVERY | FEATURE_REISSUE | FEATURE_IOCTL_ENCODE | FEATURE_FAIL_IO
               | (world->can_grow ? FEATURE_GROW : 0)
               | (world->can_quiesce ? FEATURE_QUIESCE | FEATURE_DESC_SIZE : 0)
               | (world->can_try_stop ? FEATURE_TRY_STOP : 0);
}

static void vanish_if_unused(struct world *world, struct kernel_disk *disk)
{
        if (kernel_disk_is_over(disk)) {
                TRACE(world, "kernel: disk %d is gone", (int)(disk - world->disks));
                disk->exists = false;
                disk->free_at = world->now + (world_chance(world, 500) ? world_random(world, 300 * MS) : 0);
        }
}

/* ---- what workers do ---- */

int kernel_attach(struct world *world, int number, int worker)
{
        struct kernel_disk *disk = &world->disks[number];
        int r = kernel_disk_check_attach(disk), store = world->processes[worker].store;

        if (r == 0 && world_bad_luck(world)) /* udev has it open for a moment */
                r = -EBUSY;
        if (r < 0)
                return r;
        if (!disk->was_started)
                disk->store = store;
        else if (!disk->foreign && store != disk->store && store != disk->consented)
                world_break(world, "a disk goes on with another store than it was made on");
        kernel_disk_attach(disk, worker);
        return 0;
}

int kernel_fetch(struct world *world, int number, int worker, bool all)
{
        return kernel_disk_fetch(&world->disks[number], worker, all);
}

/* kernel_cancels_late(): a driver without QUIESCE has shown the disk as down when it still cancels commands. */
static void cancel_commands(struct world *world, struct kernel_disk *disk)
{
        if (!world->can_quiesce)
                disk->cancels_until = world->now + world_random(world, MS);
}

static void lose_worker(struct world *world, struct kernel_disk *disk)
{
        bool was_live = disk->state == KERNEL_STATE_LIVE;

        kernel_disk_lose_worker(disk, world->refuses_second_begin);
        if (was_live)
                cancel_commands(world, disk);
        TRACE(world, "kernel: disk %d lost its worker, state %d%s", (int)(disk - world->disks), disk->state,
                disk->spoilt ? ", spoilt" : "");
}

void kernel_state_follows(struct world *world, int worker)
{
        for (int i = 0; i < NUMBERS; i++)
                if (world->disks[i].exists && world->disks[i].holder == worker)
                        lose_worker(world, &world->disks[i]);
}

void kernel_released(struct world *world, int worker)
{
        for (int i = 0; i < NUMBERS; i++) {
                struct kernel_disk *disk = &world->disks[i];

                if (!disk->exists || disk->holder != worker)
                        continue;
                if (!world->notices_early)
                        lose_worker(world, disk);
                seam_event_closed(world, i);
                kernel_disk_release(disk);
                vanish_if_unused(world, disk);
                kernel_may_be_replaced(world, i, 150, 2 * MS);
        }
}

void kernel_may_be_replaced(struct world *world, int number, unsigned per_mille, uint64_t within)
{
        const struct kernel_disk *disk = &world->disks[number];

        if (disk->exists && !disk->foreign && !world->calm && world_chance(world, per_mille))
                world_at(world, world->now + world_random(world, within), EVENT_STRANGER, number, 0,
                        disk->instance);
}

/* The new disk had a server, too; the next one of that may have sent START_USER_RECOVERY. */
void kernel_disk_is_replaced(struct world *world, int number, unsigned instance)
{
        struct kernel_disk *disk = find_disk(world, number, instance);

        if (!disk || world->calm || disk->holder != NO_PROCESS || kernel_delete(world, number) != 0
                || disk->exists)
                return;
        *disk = (struct kernel_disk){.exists = true,
                .foreign = true,
                .instance = ++world->instances,
                .cookie = 1, /* of no uid */
                .flags = FEATURE_RECOVERY,
                .state = KERNEL_STATE_QUIESCED,
                .was_started = true,
                .begun = world_chance(world, 500),
                .store = NO_STORE,
                .consented = NO_STORE,
                .holder = NO_PROCESS};
        TRACE(world, "foreign: disk %d is replaced", number);
}

void kernel_worker_died(struct world *world, int worker)
{
        /* only one that served has I/O in its backend */
        bool slow = world->slow_backend && world->processes[worker].stage >= PROCESS_SERVING;
        uint64_t released = slow && world_chance(world, 300) ? world_between(world, 0, 60 * SECOND)
                                                             : world_between(world, 0, 30 * MS);

        if (world->notices_early)
                world_at(world, world->now + world_random(world, released + 1), EVENT_STATE_FOLLOWS, worker,
                        0, 0);
        world_at(world, world->now + released, EVENT_RELEASED, worker, 0, 0);
}

void kernel_open_block_device(struct world *world, int number)
{
        struct kernel_disk *disk = &world->disks[number];
        bool exclusive = world_chance(world, 500);

        disk->openers++;
        disk->exclusive += exclusive;
        world_at(world, world->now + world_between(world, MS, 5 * SECOND), EVENT_OPENER_CLOSES, number,
                exclusive, disk->instance);
}

void kernel_close_block_device(struct world *world, int number, unsigned instance, bool exclusive)
{
        struct kernel_disk *disk = find_disk(world, number, instance);

        if (disk && disk->openers > 0) {
                disk->openers--;
                disk->exclusive -= exclusive;
                vanish_if_unused(world, disk);
        }
}

/* ---- what control commands do ---- */

/* A worker may have opened a foreign disk, and has then no request of it. */
static bool is_held_up(struct world *world, const struct kernel_disk *disk)
{
        return disk->state == KERNEL_STATE_LIVE && disk->holder != NO_PROCESS && disk->fetched_any
               && world->processes[disk->holder].alive && world->processes[disk->holder].hung;
}

int kernel_stop(struct world *world, int number)
{
        struct kernel_disk *disk = &world->disks[number];

        if (!disk->exists)
                return -ENODEV;
        if (is_held_up(world, disk)) /* requests in flight without an answer */
                return KERNEL_BLOCKS;
        kernel_disk_stop(disk);
        if (disk->holder != NO_PROCESS && disk->fetched_any)
                process_queues_taken(world, disk->holder);
        return 0;
}

int kernel_delete(struct world *world, int number)
{
        struct kernel_disk *disk = &world->disks[number];
        int r = kernel_stop(world, number);

        if (r != 0)
                return r;
        disk->deleted = true;
        vanish_if_unused(world, disk);
        return 0;
}

/* The worker of a live disk answers what it has in hand, and leaves once all its tags are taken back. Those
 * of requests that it had in hand are not, and a queue that is full receives nothing at all: call again. */
static int quiesce(struct world *world, struct kernel_disk *disk)
{
        int r = kernel_disk_check_quiesce(disk);

        if (r < 0)
                return r;
        if (disk->state != KERNEL_STATE_LIVE)
                return 0;
        if (world_bad_luck(world))
                return -EBUSY;
        if (disk->holder != NO_PROCESS && !world->processes[disk->holder].hung && world_chance(world, 700))
                process_queues_taken(world, disk->holder);
        return 0;
}

static int update_size(struct world *world, struct kernel_disk *disk, uint64_t size)
{
        uint64_t before = disk->size;
        int r = kernel_disk_update_size(disk, size);

        if (r == 0 && !disk->was_started)
                world_break(
                        world, "the size of a disk that there is not is changed, which crashes some kernels");
        if (r == 0 && size < before && disk->state == KERNEL_STATE_LIVE)
                world_break(world, "a disk shrinks under its users");
        return r;
}

static int add(struct world *world, struct command *command)
{
        struct kernel_disk *disk = &world->disks[command->number];
        int r = world->now < disk->free_at ? -EEXIST
                                           : kernel_disk_add(disk, &command->request, kernel_features(world));

        if (r < 0)
                return r;
        disk->instance = ++world->instances;
        disk->store = disk->consented = NO_STORE;
        command->info = *disk;
        return 0;
}

/* checked: whether the driver lets it go live. */
static int go_live(struct world *world, struct kernel_disk *disk, int worker, int checked)
{
        if (checked != 0)
                return checked;
        if (world_chance(world, 20) && !world->calm) { /* it dies at the worst moment */
                process_kill(world, worker, "dies while the disk goes live");
                return -EINTR;
        }
        kernel_disk_go_live(disk);
        world->was_live = true;
        TRACE(world, "kernel: disk %d is live", (int)(disk - world->disks));
        process_disk_is_live(world, worker);
        return 0;
}

/* Another program may have stopped it just before. A driver without QUIESCE does not look whether the worker still has the
 * queues. Only of disks that can be recovered: with another, ublkd would wait for the driver until the user asks for the
 * recovery, and look again and again. */
static int start(struct world *world, struct kernel_disk *disk, int worker)
{
        int r = go_live(world, disk, worker, kernel_disk_check_start(disk, worker));

        if (r < 0 || world->can_quiesce || world->calm || !(disk->flags & FEATURE_RECOVERY)
                || !world_chance(world, 10))
                return r;
        TRACE(world, "kernel: disk %d has no queues", (int)(disk - world->disks));
        disk->unnoticed = true;
        process_queues_taken(world, worker);
        return 0;
}

static int begin_recovery(struct world *world, struct kernel_disk *disk, int worker)
{
        int r = kernel_disk_begin_recovery(disk, world->refuses_second_begin);

        if (r == 0 && world->now < disk->cancels_until)
                world_break(world,
                        "a recovery begins while the driver cancels commands, which crashes some kernels");
        if (r != -EINVAL || !(disk->flags & FEATURE_RECOVERY))
                return r;
        if (disk->refusals == 0 || disk->refused_for != worker)
                disk->refusals++;
        disk->refused_for = worker;
        return r;
}

/* START_USER_RECOVERY and END_USER_RECOVERY, for which the helper compares right before. */
static int recover(struct world *world, struct command *command)
{
        struct kernel_disk *disk = &world->disks[command->number];
        bool compares = command->guarded && world->mistake != COMPARES_NO_COOKIE;
        int r = kernel_disk_recognise(disk, compares ? command->cookie : disk->cookie);

        if (r < 0)
                return r;
        if (disk->foreign)
                world_break(world, "a foreign disk is recovered");
        if (command->type == COMMAND_BEGIN_RECOVERY)
                return begin_recovery(world, disk, command->worker);
        return go_live(world, disk, command->worker, kernel_disk_check_end_recovery(disk, command->worker));
}

/* The helper opens the disk exclusively first. */
static int stop_unheld(struct world *world, struct kernel_disk *disk, int number)
{
        if (world_bad_luck(world))
                return -ETIME;
        return disk->exclusive > 0 ? -EBUSY : kernel_stop(world, number);
}

int kernel_execute(struct world *world, struct command *command)
{
        struct kernel_disk *disk = find_disk(world, command->number, command->instance);

        if (command->type == COMMAND_GET_INFO) {
                command->info = world->disks[command->number];
                return 0;
        }
        if (command->type == COMMAND_ADD)
                return add(world, command);
        if (command->type == COMMAND_BEGIN_RECOVERY || command->type == COMMAND_END_RECOVERY)
                return recover(world, command);
        if (!disk)
                return -ENODEV;
        switch (command->type) {
        case COMMAND_GET_AFFINITY:
                return 0;
        case COMMAND_SET_PARAMS:
                return kernel_disk_set_params(disk, command->size * MIB);
        case COMMAND_UPDATE_SIZE:
                return update_size(world, disk, command->size * MIB);
        case COMMAND_START:
                return start(world, disk, command->worker);
        case COMMAND_QUIESCE:
                return quiesce(world, disk);
        case COMMAND_TRY_STOP:
                return disk->openers > 0 ? -EBUSY : kernel_stop(world, command->number);
        case COMMAND_STOP_UNHELD:
                return stop_unheld(world, disk, command->number);
        case COMMAND_STOP:
                return kernel_stop(world, command->number);
        default:
                return kernel_delete(world, command->number);
        }
}
