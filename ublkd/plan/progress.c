/* SPDX-License-Identifier: MIT */
/* Whether a worker makes progress. Each look is compared with the one before; a standstill begins with the first look
 * that finds requests and no end of one since the look before. */
#include "ublkd/plan/progress.h"

enum {
        SAMPLE_USEC = 1000 * 1000,        /* between two looks at a thread that runs */
        LOOK_USEC_MAX = 15 * 1000 * 1000, /* between two looks, however long the patience is */
        LOOK_USEC_MIN = 250 * 1000,
        BUSY_SHARE = 2, /* a thread spins if it had one CPU for more than one part in so many */
};

static bool lasts(uint64_t since, uint64_t now, uint64_t patience)
{
        return since > 0 && now - since >= patience;
}

/* Return since when a count stands still, as this look finds it. */
static uint64_t still_since(bool waits, bool moved, uint64_t since, uint64_t now)
{
        if (!waits)
                return 0;
        return moved || since == 0 ? now : since;
}

static uint64_t disk_since(const struct progress_memory *memory, const struct progress_look *look)
{
        return still_since(look->disk_in_flight > 0, look->disk_ended != memory->disk_ended,
                memory->disk_since, look->at);
}

static uint64_t queue_since(
        const struct progress_seen *seen, const struct progress_queue *queue, uint64_t now)
{
        return still_since(queue->at_store > 0, queue->ended != seen->last.ended, seen->since, now);
}

bool progress_needs_threads(
        const struct progress_memory *memory, const struct progress_look *look, uint64_t patience)
{
        bool needs = lasts(disk_since(memory, look), look->at, patience);

        for (unsigned i = 0; i < look->count && !needs; i++) {
                const struct progress_seen *seen = &memory->queues[i];
                const struct progress_queue *queue = &look->queues[i];

                needs = lasts(queue_since(seen, queue, look->at), look->at, patience)
                        || (look->disk_in_flight > 0 && queue->rounds == seen->last.rounds
                                && lasts(seen->rounds_since, look->at, patience));
        }
        return needs;
}

static void remember_queue(struct progress_seen *seen, const struct progress_queue *queue, uint64_t now)
{
        seen->since = queue_since(seen, queue, now);
        if (seen->rounds_since == 0 || queue->rounds != seen->last.rounds)
                seen->rounds_since = now;
        seen->last = *queue;
}

/* A thread that runs and whose loop stands still: two looks at its CPU time show whether it has a CPU. */
static enum progress judge_running(
        struct progress_seen *seen, const struct progress_queue *queue, uint64_t now)
{
        uint64_t elapsed = now - seen->sampled_at, used = queue->cpu_usec - seen->cpu_usec;

        if (seen->sampled_at > 0 && elapsed >= SAMPLE_USEC)
                return used > elapsed / BUSY_SHARE ? PROGRESS_SPINS : PROGRESS_STARVED;
        if (seen->sampled_at == 0) {
                seen->sampled_at = now;
                seen->cpu_usec = queue->cpu_usec;
        }
        return PROGRESS_UNSURE;
}

/* A thread that runs without a turn of its loop may have come to grief before it counted what came. */
static enum progress judge_uncounted(
        struct progress_seen *seen, const struct progress_queue *queue, uint64_t now)
{
        enum progress progress = judge_running(seen, queue, now);

        return progress == PROGRESS_STARVED ? PROGRESS_MADE
                                            : progress; /* it has nothing to do, for all we know */
}

/* What keeps a thread that sleeps, or was not found, from its requests. */
static enum progress judge_asleep(const struct progress_queue *queue, bool full)
{
        if (queue->at_store > 0)
                return full ? PROGRESS_MADE : PROGRESS_SLOW;
        return queue->thread == THREAD_UNKNOWN ? PROGRESS_UNSURE : PROGRESS_LOST;
}

/* waits: for its own requests, or for some of the disk that no queue knows of. */
static enum progress judge_queue(struct progress_seen *seen, const struct progress_queue *queue, bool waits,
        const struct progress_look *look, uint64_t patience)
{
        bool runs = queue->thread == THREAD_RUNS && lasts(seen->rounds_since, look->at, patience);

        if (!runs)
                seen->sampled_at = 0;
        if (runs && waits)
                return judge_running(seen, queue, look->at);
        if (runs && look->disk_in_flight > 0)
                return judge_uncounted(seen, queue, look->at);
        if (!waits)
                return PROGRESS_MADE;
        return queue->thread == THREAD_STOPPED ? PROGRESS_STOPPED : judge_asleep(queue, look->full);
}

/* From the least to the most that has to be done about it. */
static enum progress worse(enum progress one, enum progress other)
{
        static const unsigned weight[_PROGRESS_MAX] = {
                [PROGRESS_MADE] = 0,
                [PROGRESS_LOST] = 1,
                [PROGRESS_SLOW] = 2,
                [PROGRESS_STARVED] = 3,
                [PROGRESS_UNSURE] = 4,
                [PROGRESS_SPINS] = 5,
                [PROGRESS_STOPPED] = 6,
        };

        return weight[one] >= weight[other] ? one : other;
}

/* Requests of the disk stand still although no queue has one at its store: each queue may be the one that has not
 * taken them. */
static bool is_unknown_to_worker(
        const struct progress_memory *memory, const struct progress_look *look, uint64_t patience)
{
        uint64_t at_store = 0;

        for (unsigned i = 0; i < look->count; i++)
                at_store += look->queues[i].at_store;
        return at_store == 0 && !look->held && lasts(memory->disk_since, look->at, patience);
}

static enum progress judge_all(
        struct progress_memory *memory, const struct progress_look *look, uint64_t patience)
{
        enum progress result = PROGRESS_MADE;
        bool unknown;

        memory->disk_since = disk_since(memory, look);
        memory->disk_ended = look->disk_ended;
        memory->stopped_since = still_since(look->stopped, false, memory->stopped_since, look->at);
        if (lasts(memory->stopped_since, look->at, patience))
                result = PROGRESS_STOPPED; /* a flush that waits is not among what the kernel counts */
        unknown = is_unknown_to_worker(memory, look, patience);
        for (unsigned i = 0; i < look->count; i++) {
                struct progress_seen *seen = &memory->queues[i];

                remember_queue(seen, &look->queues[i], look->at);
                result = worse(
                        result, judge_queue(seen, &look->queues[i],
                                        unknown || lasts(seen->since, look->at, patience), look, patience));
        }
        return result;
}

/* Return whether one look shows it, whatever was before, so that another one has to show the same. The requests of the disk
 * are read before those of the worker: a request that ends in between looks like one that the worker does not know of. And a
 * worker that has waited for its store for long may be stopped for a moment. */
static bool shows_at_once(enum progress progress)
{
        return progress == PROGRESS_LOST || progress == PROGRESS_STOPPED;
}

enum progress progress_judge(
        struct progress_memory *memory, const struct progress_look *look, uint64_t patience)
{
        enum progress result = judge_all(memory, look, patience), last = memory->last;
        bool confirmed =
                result == PROGRESS_MADE || (shows_at_once(result) ? last == result : last != PROGRESS_MADE);

        memory->last = result;
        return confirmed ? result : PROGRESS_UNSURE;
}

static uint64_t pause_of(uint64_t patience)
{
        uint64_t pause = patience / 2;

        if (pause > LOOK_USEC_MAX)
                return LOOK_USEC_MAX;
        return pause < LOOK_USEC_MIN ? LOOK_USEC_MIN : pause;
}

uint64_t progress_first(uint32_t spread, uint64_t now, uint64_t patience)
{
        return now + (pause_of(patience) * spread >> 32);
}

uint64_t progress_next(enum progress progress, uint64_t now, uint64_t patience)
{
        return now + (progress == PROGRESS_UNSURE ? SAMPLE_USEC : pause_of(patience));
}

bool progress_calls_for_kill(enum progress progress)
{
        return progress == PROGRESS_STOPPED || progress == PROGRESS_SPINS || progress == PROGRESS_LOST;
}

static bool requests_wait(const struct progress_memory *memory)
{
        bool wait = memory->disk_since > 0;

        for (unsigned i = 0; i < memory->count; i++)
                wait = wait || memory->queues[i].since > 0;
        return wait;
}

static bool is_accepted(const struct progress_price *price)
{
        return price->automatic && !price->disk_goes && !price->fails_writes;
}

bool progress_kill_is_worth(const struct progress_price *price, const struct progress_memory *memory)
{
        return is_accepted(price) && (price->replayed || requests_wait(memory));
}

bool progress_kill_is_free(const struct progress_price *price)
{
        return is_accepted(price) && price->replayed;
}
