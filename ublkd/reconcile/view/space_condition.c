/* SPDX-License-Identifier: MIT */
/* Reports a backing store without room for writes, or with little. */
#include "ublkd/reconcile/view/space_condition.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/model/io_errors.h"
#include "ublkd/reconcile/view/error_condition.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int space_explain_full(bool waits, const struct region_missed *missed, char **ret)
{
        static const char *const fates[] = {
                "The backing store has no room for a write: the write failed (onFull is \"error\").",
                "The backing store has no room for a write: the write waits until there is room (onFull is "
                "\"wait\")."};
        static const char advice[] = "Make room on the file system of the backing store, or raise its quota.";
        int n, error = missed ? (int)missed->error : 0;

        if (missed)
                n = asprintf(ret, "%s %s of %u bytes at byte %llu got: %s (%s). %s", fates[waits],
                        error_subject((enum stats_op)missed->op), (unsigned)missed->length,
                        (unsigned long long)missed->offset, strerror(error), io_error_name(error), advice);
        else
                n = asprintf(ret, "%s %s", fates[waits], advice);
        if (n >= 0)
                return 0;
        *ret = NULL;
        return -ENOMEM;
}

static int explain_full(bool waits, struct device_condition *ret)
{
        return device_condition_set(ret, CONDITION_FALSE, REASON_STORE_FULL,
                "The backing store had no room for a write; make room. %s",
                waits ? "Writes wait until there is room, since onFull is \"wait\"."
                      : "Writes that find no room fail, since onFull is \"error\". The next write shows "
                        "whether there is room: this condition stays until one has succeeded.");
}

int space_explain_low(const struct store_room *store, char **ret)
{
        int n = asprintf(ret,
                "The file system of the backing file%s%s had %llu MiB left when ublkd looked. The disk may "
                "still need %llu MiB, which the sparse file has not allocated; make room before a write "
                "finds none.",
                store->place ? " of " : "", store->place ? store->place : "",
                (unsigned long long)(store->room.available >> 20),
                (unsigned long long)(store->room.missing >> 20));

        if (n >= 0)
                return 0;
        *ret = NULL;
        return -ENOMEM;
}

/* Write the condition of a store with little room, after those of the stores before it. Return 0 or -ENOMEM. */
static int add_low(const struct store_room *store, struct device_condition *condition)
{
        uint64_t seen_at = condition->observed_at;
        _cleanup_free_ char *text = NULL, *before = TAKE_PTR(condition->message);
        int r = space_explain_low(store, &text);

        if (r >= 0)
                r = device_condition_set(condition, CONDITION_FALSE, REASON_STORE_LOW, "%s%s%s",
                        before ? before : "", before ? " " : "", text);
        if (r >= 0) /* of several looks the oldest */
                condition->observed_at =
                        seen_at > 0 && seen_at < store->room.seen_at ? seen_at : store->room.seen_at;
        return r;
}

int space_condition(const struct space_facts *facts, struct device_condition *ret)
{
        struct device_condition low = {};
        int r = 0;

        if (facts->full_since > 0)
                return explain_full(facts->waits, ret);
        for (unsigned i = 0; r >= 0 && i < facts->count; i++)
                if (facts->rooms[i].room.low)
                        r = add_low(&facts->rooms[i], &low);
        if (r < 0 || !low.message)
                return r;
        *ret = low;
        return 0;
}
