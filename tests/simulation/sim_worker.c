/* SPDX-License-Identifier: MIT */
/* Worker processes: boot, open, GO, fetch, serve, leave, die. */
#include "sim.h"

enum {
        ATTACH_TRIES = 200,
        ATTACH_PAUSE = 10 * 1000,
};

static uint64_t step_delay(struct world *world)
{
        if (world_bad_luck(world))
                return world_between(world, 100 * MS, 20 * SECOND);
        return world_between(world, 20, 2 * MS);
}

static void step_later(struct world *world, int index)
{
        world_at(world, world->now + step_delay(world), EVENT_PROCESS_STEP, index, 0,
                world->processes[index].stage);
}

int process_spawn(struct world *world, const struct process *process)
{
        int index = world->process_count;

        if (index >= WORKERS) {
                world_break(world, "far too many workers are started");
                return NO_PROCESS;
        }
        world->process_count++;
        world->processes[index] = *process;
        if (!process->preflight)
                world->socket_owner = index;
        step_later(world, index);
        return index;
}

/* ---- what it sends, and receives ---- */

static uint64_t travel_time(struct world *world)
{
        return world_bad_luck(world) ? world_random(world, 2 * SECOND) : world_between(world, 5, 300);
}

/* Queues a message; both directions keep their order. */
void process_send(struct world *world, int index, enum message message, unsigned value, unsigned incarnation)
{
        struct process *process = &world->processes[index];
        bool down = message >= MESSAGE_GO;
        /* a new connection is another descriptor, and may be read before what is left in the old one */
        bool ordered = message != MESSAGE_CONNECT;
        uint64_t *last = down ? &process->received_until : &process->sent_until;
        uint64_t time = world->now + travel_time(world);

        if (ordered && time <= *last)
                time = *last + 1;
        if (ordered)
                *last = time;
        world_at(world, time, down ? EVENT_TO_PROCESS : EVENT_TO_UBLKD, index,
                (int)((unsigned)message | (unsigned)process->stage << 4 | value << 8), incarnation);
}

static void send_message(struct world *world, int index, enum message message, unsigned value)
{
        if (world->processes[index].connection)
                process_send(world, index, message, value, world->processes[index].connection);
}

/* All that it has sent is read before its death is seen. */
void process_kill(struct world *world, int index, const char *why)
{
        struct process *process = &world->processes[index];
        uint64_t seen = world->now + world_between(world, 10, 2 * MS);

        if (!process->alive)
                return;
        TRACE(world, "worker %d: %s", index, why);
        if (world_chance(world, 300))
                send_message(world, index, MESSAGE_GONE, 0);
        process->alive = false;
        kernel_worker_died(world, index);
        world_at(world, seen > process->sent_until ? seen : process->sent_until + 1, EVENT_DEATH_SEEN, index,
                0, 0);
}

static void enter(struct world *world, int index, enum process_stage stage)
{
        world->processes[index].stage = stage;
        step_later(world, index);
}

/* ---- its way ---- */

/* The store is the right one by where it comes from, or by what is written down of it. */
static enum refusal open_store(struct world *world, struct process *process)
{
        if (world->backend_broken)
                return REFUSAL_BROKEN;
        if (process->given != NO_STORE) {
                process->store = process->given;
                process->known_as = process->expected != NO_STORE ? process->expected : process->given;
                return REFUSAL_NONE;
        }
        if (world->calm && process->expected != NO_STORE) /* in the end the file that is missed is put back */
                world->path = process->expected;
        if (world->path == NO_STORE)
                return REFUSAL_GONE;
        process->store = process->known_as = world->path;
        return process->expected != NO_STORE && process->expected != process->store && !world->old_workers
                       ? REFUSAL_CHANGED
                       : REFUSAL_NONE;
}

static void open_backend(struct world *world, int index)
{
        struct process *process = &world->processes[index];
        enum refusal refusal = open_store(world, process);

        if (refusal == REFUSAL_NONE) {
                process->stage = PROCESS_OPEN;
                send_message(world, index, MESSAGE_PARAMS, process->size);
                return;
        }
        if (world_chance(world, 800)) {
                process->stage = PROCESS_LEAVING;
                send_message(world, index, MESSAGE_FAILED, refusal);
        }
        process_kill(world, index, "cannot open its store");
}

static void attach(struct world *world, int index)
{
        struct process *process = &world->processes[index];
        int r = kernel_attach(world, process->number, index);

        if (r == 0)
                enter(world, index, PROCESS_FETCHING);
        else if (process->attach_tries++ < ATTACH_TRIES)
                world_at(world, world->now + ATTACH_PAUSE, EVENT_PROCESS_STEP, index, 0, PROCESS_ATTACHING);
        else
                process_kill(world, index, "cannot open /dev/ublkc");
}

static void fetch(struct world *world, int index)
{
        struct process *process = &world->processes[index];
        struct kernel_disk *disk = &world->disks[process->number];
        bool all = disk->holder == index && disk->fetched_any;

        if (all && !world->calm && world_chance(world, 30)) {
                process_kill(world, index, "dies while it fetches");
                return;
        }

        if (kernel_fetch(world, process->number, index, all) < 0)
                process_kill(world, index, "cannot fetch");
        else if (!all)
                step_later(world, index);
        else {
                process->stage = PROCESS_READY;
                process->deaf = !world->calm && world_bad_luck(world);
                TRACE(world, "worker %d: ready%s", index, process->deaf ? ", and closes its socket" : "");
                send_message(world, index, MESSAGE_READY, 0);
        }
}

void process_step(struct world *world, int index)
{
        struct process *process = &world->processes[index];

        if (!process->alive || process->hung)
                return;
        if (world_bad_luck(world)) {
                process_kill(world, index, "dies");
                return;
        }
        if (world_bad_luck(world) && world_chance(world, 200)) {
                TRACE(world, "worker %d: hangs", index);
                process->hung = true;
                return;
        }
        switch (process->stage) {
        case PROCESS_BOOTING:
                process->listens = true;
                send_message(world, index, MESSAGE_HELLO, 0);
                enter(world, index, PROCESS_OPENING);
                break;
        case PROCESS_OPENING:
                open_backend(world, index);
                break;
        case PROCESS_ATTACHING:
                attach(world, index);
                break;
        case PROCESS_FETCHING:
                fetch(world, index);
                break;
        case PROCESS_LEAVING:
                process_kill(world, index, "leaves");
                break;
        default:
                break;
        }
}

static void leave(struct world *world, int index)
{
        if (world->processes[index].stage != PROCESS_LEAVING)
                enter(world, index, PROCESS_LEAVING);
}

/* Also of one that leaves, and has waited for its store. */
void process_queues_taken(struct world *world, int index)
{
        if (world->processes[index].alive)
                enter(world, index, PROCESS_LEAVING);
}

/* A client removes the device meanwhile, and a program that no search sees has opened the disk. */
static void may_be_removed(struct world *world, int index)
{
        if (world->calm || !world_chance(world, 100))
                return;
        kernel_open_block_device(world, world->processes[index].number);
        world_at(world, world->now + world_random(world, SECOND), EVENT_REMOVAL, 0, 0, 0);
}

/* Of some the store never answers. */
static void leave_by_message(struct world *world, int index)
{
        struct process *process = &world->processes[index];

        if (process->stage != PROCESS_READY && process->stage != PROCESS_SERVING)
                return;
        process->retires = true;
        may_be_removed(world, index);
        if (!world->calm && world->slow_backend && world_chance(world, 500)) {
                TRACE(world, "worker %d: is to leave, and waits for its store", index);
                process->stage = PROCESS_LEAVING;
        } else {
                leave(world, index);
        }
}

void process_disk_is_live(struct world *world, int index)
{
        struct process *process = &world->processes[index];

        if (process->alive && process->stage == PROCESS_READY && world_chance(world, 500))
                process->stage = PROCESS_SERVING; /* the first I/O came before LIVE did */
}

/* ---- messages to the worker ---- */

static void go(struct world *world, int index, int number)
{
        struct process *process = &world->processes[index];

        if (process->going)
                return;
        if (process->preflight)
                world_break(world, "a preflight worker gets GO");
        for (int i = 0; i < world->process_count; i++)
                if (world->processes[i].alive && world->processes[i].going && i != index)
                        world_break(world, "two workers are past GO");
        process->going = true;
        process->number = number;
        TRACE(world, "worker %d: goes for %d", index, number);
        if (process->stage != PROCESS_LEAVING)
                enter(world, index, PROCESS_ATTACHING);
}

static void grow(struct world *world, int index, unsigned size)
{
        struct process *process = &world->processes[index];

        if (process->stage < PROCESS_OPEN || process->stage == PROCESS_LEAVING)
                return;
        if (process->size < size && world->backend_broken) {
                send_message(world, index, MESSAGE_REFUSED, process->size);
                return;
        }
        if (process->size < size)
                process->size = size;
        send_message(world, index, MESSAGE_GROWN, process->size);
}

static void greet(struct world *world, int index, unsigned incarnation)
{
        struct process *process = &world->processes[index];

        process->connection = incarnation;
        send_message(world, index, MESSAGE_HELLO, (unsigned)(process->number + 1));
        if (process->stage >= PROCESS_OPEN && process->store != NO_STORE)
                send_message(world, index, MESSAGE_PARAMS, process->size);
        if (process->stage == PROCESS_READY || process->stage == PROCESS_SERVING)
                send_message(world, index, MESSAGE_READY, 0);
}

void process_receive(
        struct world *world, int index, enum message message, unsigned value, unsigned incarnation)
{
        struct process *process = &world->processes[index];

        if (!process->alive || process->hung)
                return;
        if (incarnation < process->connection) /* taking the next call closes the connection before it */
                return;
        switch (message) {
        case MESSAGE_GO:
                go(world, index, (int)value);
                break;
        case MESSAGE_LIVE:
                if (process->stage == PROCESS_READY)
                        process->stage = PROCESS_SERVING;
                break;
        case MESSAGE_GROW:
                grow(world, index, value);
                break;
        case MESSAGE_LEAVE:
                leave_by_message(world, index);
                break;
        case MESSAGE_CONNECT:
                greet(world, index, incarnation);
                break;
        case MESSAGE_EOF:
                if (!process->going)
                        leave(world, index);
                process->connection = 0;
                break;
        default:
                break;
        }
}
