/* SPDX-License-Identifier: MIT */
/* When the partitions of a disk are to be looked at. */
#include "ublkd/reconcile/view/partitions_due.h"

static const uint64_t write_pause = 1000 * 1000, first_pause = 5 * 1000 * 1000,
                      longest_pause = 300 * 1000 * 1000;

static bool is_same_disk(const struct partitions_key *one, const struct partitions_key *other)
{
        return one->cookie == other->cookie && one->number == other->number && one->size == other->size
               && one->shown == other->shown;
}

static uint64_t pause_after(unsigned failures)
{
        uint64_t pause = first_pause;

        for (unsigned i = 1; i < failures && pause < longest_pause; i++)
                pause *= 2;
        return pause < longest_pause ? pause : longest_pause;
}

uint64_t partitions_due(const struct partitions_history *history, const struct partitions_key *now)
{
        if (!history->known || !is_same_disk(&history->key, now))
                return 0;
        if (history->key.changes != now->changes)
                return history->ended_at
                       + (history->result == PARTITIONS_UNKNOWN ? pause_after(history->failures)
                                                                : write_pause);
        return history->result == PARTITIONS_SETTLED ? UINT64_MAX
                                                     : history->ended_at + pause_after(history->failures);
}

void partitions_ended(struct partitions_history *history, const struct partitions_key *key,
        enum partitions_result result, uint64_t now)
{
        unsigned before = history->known && is_same_disk(&history->key, key) ? history->failures : 0;

        *history = (struct partitions_history){.known = true,
                .result = result,
                .key = *key,
                .ended_at = now,
                .failures = result == PARTITIONS_SETTLED ? 0 : before + 1};
}
