/* SPDX-License-Identifier: MIT */
/* The fault target: each request goes to the child, unless a rule decides otherwise.
 *
 * There is one queue, so all of the state belongs to its thread, and the order of the requests decides what happens. The tallies of
 * the rules lie in the memory that is shared with ublkd: they are in the statistics, and outlive the worker, so that a rule that
 * kills it once does not kill the next one as well. */
#include "targets/fault/fault.h"
#include "targets/fault/fault_desc.h"

#include "targets/fault/fault_counts.h"
#include "targets/fault/fault_death.h"
#include "targets/fault/fault_cache.h"
#include "targets/fault/fault_disk.h"
#include "targets/fault/fault_parse.h"
#include "targets/scrub/scrub.h"
#include "targets/target_wait.h"

#include <errno.h>
#include <sys/random.h>

enum { SEED_BITS = 52 };                   /* within the bounds of the schema, to be given again */
#define TICK_NSEC (UINT64_C(10) * 1000000) /* how late a change of the rules may end a wait */

struct fault_state {
        struct fault_rules rules;
        uint32_t sequence; /* of the rules, as target_live_read() has it */
        unsigned changes;  /* how often the rules have changed */
        struct fault_counts *counts, own_counts;
        struct fault_disk disk;
        uint32_t
                block_size; /* of the cache below another target; 0: the outermost one has that of the disk */
};

/* ---- the rules ---- */

static void begin_rules(struct fault_state *state)
{
        fault_tallies_begin(&state->rules, state->counts->tallies);
        if (state->rules.seed != 0)
                state->counts->seed = state->rules.seed;
}

/* Take the rules that ublkd has now. */
static void follow_rules(struct target_queue *queue)
{
        struct fault_state *state = queue->device->state;
        struct fault_rules rules;

        if (!target_live_read(&queue->device->live, &state->sequence, &rules, sizeof(rules)))
                return;
        if (!fault_rules_are_valid(&rules))
                return;
        state->rules = rules;
        state->changes++;
        begin_rules(state);
}

/* Wait for so many nanoseconds, or until the rules change. Return 0 or -errno. */
static int wait_co(struct target_queue *queue, uint64_t nanoseconds)
{
        const struct fault_state *state = queue->device->state;
        unsigned changes = state->changes;
        int r = 0;

        while (r >= 0 && nanoseconds > 0 && state->changes == changes) {
                uint64_t part = nanoseconds < TICK_NSEC ? nanoseconds : TICK_NSEC;

                r = await_timeout(queue, part);
                if (nanoseconds != UINT64_MAX)
                        nanoseconds -= part;
                follow_rules(queue);
        }
        return r;
}

/* ---- requests ---- */

static bool carries_data(const struct target_io *io)
{
        return io->op == IO_READ || io->op == IO_WRITE;
}

static struct fault_disk *disk_of(const struct target_io *io)
{
        return &((struct fault_state *)io->queue->device->state)->disk;
}

static int pass(struct target_io *io)
{
        return fault_disk_perform(disk_of(io), io);
}

/* Return what the callback answers, which is less than the core has asked for. */
static int pass_first(struct target_io *io, uint64_t bytes)
{
        uint32_t block_size = io->queue->device->logical_block_size;
        struct target_io first = *io;
        int r;

        first.length = (uint32_t)(bytes - bytes % block_size);
        if (bytes >= io->length)
                return pass(io);
        r = first.length > 0 ? pass(&first) : 0;
        return r < 0 ? r : (int)first.length;
}

static void invert_bit(const struct target_io *io, uint64_t random)
{
        ((unsigned char *)io->data)[random / 8 % io->length] ^= (unsigned char)(1 << random % 8);
}

/* The data of a write is not the target's: it is as it was when the write is done. */
static int pass_corrupted(struct target_io *io, uint64_t random)
{
        int r;

        if (io->op == IO_WRITE)
                invert_bit(io, random);
        r = pass(io);
        if (r >= 0 || io->op == IO_WRITE)
                invert_bit(io, random);
        return r;
}

static int obey(struct target_io *io, const struct fault_rule *rule, uint64_t random)
{
        int r;

        switch ((enum fault_action)rule->action) {
        case FAULT_ERROR:
                return -(int)rule->value;
        case FAULT_SHORT:
                return carries_data(io) ? pass_first(io, rule->value) : pass(io);
        case FAULT_HANG:
                r = wait_co(io->queue, UINT64_MAX);
                return r < 0 ? r : pass(io);
        case FAULT_DIE:
                return fault_die_at(io, rule, pass);
        case FAULT_POWERCUT:
                await_mutex(io->queue, &disk_of(io)->mutex);
                (void)fault_disk_cut(disk_of(io), io, random, NULL);
                fault_die();
        case FAULT_CORRUPT:
                return carries_data(io) && io->data ? pass_corrupted(io, random) : pass(io);
        default:
                return pass(io);
        }
}

static int fault_perform(struct target_io *io)
{
        struct fault_state *state = io->queue->device->state;
        struct fault_decision decision;
        struct fault_rule rule = {};
        int r = 0;

        follow_rules(io->queue);
        fault_decide(&state->rules, state->counts->seed, state->counts->tallies, io, &decision);
        if (decision.rule)
                rule = *decision.rule; /* the rules may change while it waits */
        if (decision.delay > 0)
                r = wait_co(io->queue, decision.delay * 1000);
        if (r < 0)
                return r;
        return decision.rule ? obey(io, &rule, decision.random) : pass(io);
}

/* ---- actions ---- */

/* Without a seed of the client each cut is another one, also after the death that is its end. */
static uint32_t seed_of(struct fault_state *state, const struct fault_powercut_arguments *arguments)
{
        uint32_t seed = (uint32_t)arguments->seed;

        while (seed == 0)
                seed = (uint32_t)fault_random(state->counts->seed, ++state->counts->cuts);
        return seed;
}

/* Its end is in the region before the worker is gone. Where the child fails, too: the disk may have lost something, and no client
 * may take it for one that lives. */
static int cut_power(struct target_action *action)
{
        struct fault_state *state = action->queue->device->state;
        struct target_io io = {.queue = action->queue, .tag = (uint16_t)action->queue->device->queue_depth};
        uint32_t seed;

        if (!state->disk.caches)
                return -EOPNOTSUPP;
        await_mutex(action->queue, &state->disk.mutex);
        if (target_action_is_over(action)) {
                co_mutex_unlock(&state->disk.mutex);
                return -ECANCELED;
        }
        seed = seed_of(state, action->arguments);
        target_action_number(action, seed);
        target_action_ended(action, fault_disk_cut(&state->disk, &io, fault_random(seed, 0), action));
        fault_die();
}

static int fault_act(struct target_action *action, unsigned verb)
{
        return verb == FAULT_VERB_POWERCUT ? cut_power(action) : scrub_act(action, verb);
}

/* ---- the device ---- */

/* Requests begin and end where a block of the child does: those of the disk can be larger, but need not begin there. */
static uint32_t block_size_below(const struct target_device *device, const struct target_geometry *geometry)
{
        uint32_t size = geometry->logical_block_size, wanted = device->wanted_block_size;

        if (size < geometry->logical_block_size_min)
                size = geometry->logical_block_size_min;
        if (size < FAULT_BLOCK_SIZE_MIN)
                size = FAULT_BLOCK_SIZE_MIN;
        return wanted > 0 && wanted < size ? wanted : size;
}

static int fault_open(
        struct target_device *device, struct target_geometry *ret, struct problem_list *problems)
{
        const struct fault_options *options = device->config;
        struct fault_state *state = device->state;

        if (device->child_count != 1)
                return -EINVAL;
        ret->prefers_zero_copy = false; /* a rule may change the bytes */
        ret->volatile_cache = ret->volatile_cache || options->volatile_cache;
        state->block_size = device->is_below ? block_size_below(device, ret) : 0;
        return fault_parse(device->config, &state->rules, problems);
}

static uint64_t fault_size(const struct target_device *device, const uint64_t *children)
{
        (void)device;
        return children[0];
}

static bool fault_is_part(const struct target_device *device, uint64_t *ret)
{
        (void)device;
        *ret = 0;
        return true;
}

static uint32_t block_size_of(const struct target_device *device)
{
        const struct fault_state *state = device->state;

        return state->block_size > 0 ? state->block_size : device->logical_block_size;
}

/* A damaged cache cannot be served: what openers have written is not known. */
static int fault_start_device(struct target_device *device, struct problem_list *problems)
{
        const struct fault_options *options = device->config;
        struct fault_cache cache;
        int r;

        if (!options->volatile_cache || !device->kept.memory)
                return 0;
        r = fault_cache_open(&cache, device->kept.memory, block_size_of(device), target_size(device));
        if (r != -ENODATA)
                return r;
        r = problem_add(problems, ENODATA, "/target", "KeptMemoryLost",
                "The volatile cache of the disk is damaged, and with it what was not flushed; stop the "
                "device and "
                "start it for a new disk.");
        return r < 0 ? r : -ENODATA;
}

/* Not in open(), which a preflight calls beside the worker that serves. */
static int fault_start_queue(struct target_queue *queue)
{
        const struct fault_options *options = queue->device->config;
        struct fault_state *state = queue->device->state;
        int r;

        if (queue->index > 0)
                return -EINVAL;
        r = fault_disk_begin(
                &state->disk, options->volatile_cache, queue->device, block_size_of(queue->device));
        if (r < 0)
                return r;
        state->counts = queue->device->live.counts ? (struct fault_counts *)queue->device->live.counts
                                                   : &state->own_counts;
        begin_rules(state);
        follow_rules(queue);
        while (state->counts->seed == 0) {
                uint64_t seed;

                if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
                        return -errno;
                state->counts->seed = seed >> (64 - SEED_BITS);
        }
        return 0;
}

static void fault_stop_queue(struct target_queue *queue)
{
        fault_disk_end(&((struct fault_state *)queue->device->state)->disk);
}

const struct target fault_target = {
        .desc = &fault_desc,
        .device_size = sizeof(struct fault_state),
        .open = fault_open,
        .size = fault_size,
        .is_part = fault_is_part,
        .start_device = fault_start_device,
        .start_queue = fault_start_queue,
        .stop_queue = fault_stop_queue,
        .read = fault_perform,
        .write = fault_perform,
        .flush = fault_perform,
        .discard = fault_perform,
        .write_zeroes = fault_perform,
        .act = fault_act,
        .scan = fault_disk_scan, /* the rules are for requests */
};
