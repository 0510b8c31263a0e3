/* SPDX-License-Identifier: MIT */
/* The last action that a worker took, in the region. */
#include "ublkd/proto/region_action.h"

#include <errno.h>
#include <string.h>

#define NUMBER_MAX (UINT64_C(1) << 53) /* whole in every JSON number */
#define AT(field) (offsetof(struct region_control, action) + offsetof(struct region_action, field))

enum { READS_MAX = 3, ERRNO_MAX = 4095 };

/* ---- the worker ---- */

/* Odd already where a worker died at it. */
static void begin_write(struct region_action *action)
{
        __atomic_store_n(&action->sequence, action->sequence | 1, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_RELEASE);
}

static void end_write(struct region_action *action)
{
        __atomic_store_n(&action->sequence, action->sequence + 1, __ATOMIC_RELEASE);
}

/* `cancel` is the supervisor's, which may write it at this moment. */
void region_action_begin(struct region_control *control, uint64_t id, uint64_t worker)
{
        struct region_action *action = &control->action;

        begin_write(action);
        action->state = REGION_ACTION_RUNNING;
        action->id = id;
        action->worker = worker;
        action->done = action->total = 0;
        action->found = action->found_bytes = 0;
        action->error = action->range_count = action->number = 0;
        memset(action->ranges, 0, sizeof(action->ranges));
        end_write(action);
}

void region_action_progress(struct region_control *control, uint64_t done, uint64_t total)
{
        begin_write(&control->action);
        control->action.done = done;
        control->action.total = total;
        end_write(&control->action);
}

void region_action_found(struct region_control *control, uint64_t offset, uint64_t length)
{
        struct region_action *action = &control->action;
        struct region_range *last = action->range_count > 0 ? &action->ranges[action->range_count - 1] : NULL;
        bool is_listed = action->found == action->range_count;

        begin_write(action);
        action->found_bytes += length;
        if (last && is_listed && last->offset + last->length == offset)
                last->length += length;
        else {
                action->found++;
                if (action->range_count < REGION_ACTION_RANGES)
                        action->ranges[action->range_count++] = (struct region_range){offset, length};
        }
        end_write(action);
}

void region_action_number(struct region_control *control, uint32_t number)
{
        begin_write(&control->action);
        control->action.number = number;
        end_write(&control->action);
}

void region_action_end(struct region_control *control, enum region_action_state state, int error)
{
        begin_write(&control->action);
        control->action.state = state;
        control->action.error = (uint32_t)error;
        end_write(&control->action);
        __atomic_fetch_add(&control->action.ends, 1, __ATOMIC_RELEASE);
}

bool region_action_is_cancelled(const struct region_control *control, uint64_t id)
{
        return __atomic_load_n(&control->action.cancel, __ATOMIC_RELAXED) == id;
}

uint64_t region_action_id(const struct region_control *control)
{
        return control->action.id;
}

/* ---- the supervisor ---- */

static uint64_t bounded(uint64_t number, uint64_t most)
{
        return number < most ? number : most;
}

static void check_ranges(const struct region_action *found, struct action_report *report)
{
        const uint64_t count = bounded(bounded(found->range_count, found->found), REGION_ACTION_RANGES);

        for (unsigned i = 0; i < count; i++) {
                const struct region_range *range = &found->ranges[i];
                const uint64_t offset = bounded(range->offset, NUMBER_MAX);

                report->ranges[report->range_count++] =
                        (struct region_range){offset, bounded(range->length, NUMBER_MAX - offset)};
        }
}

static struct action_report check(const struct region_action *found, bool is_torn)
{
        const uint64_t total = bounded(found->total, NUMBER_MAX);
        struct action_report report = {
                .id = found->id,
                .worker = found->worker,
                .total = total,
                .done = bounded(found->done, total),
                .found = bounded(found->found, NUMBER_MAX),
                .found_bytes = bounded(found->found_bytes, NUMBER_MAX),
                .number = found->number,
                .state = is_torn || found->state >= _REGION_ACTION_STATE_MAX
                                 ? REGION_ACTION_RUNNING
                                 : (enum region_action_state)found->state,
        };

        if (report.state == REGION_ACTION_FAILED)
                report.error = found->error > 0 && found->error <= ERRNO_MAX ? (int)found->error : EIO;
        check_ranges(found, &report);
        return report;
}

int region_action_read(int fd, struct action_report *ret)
{
        struct region_action found;
        uint32_t after = 0;
        bool is_torn = true;
        int r = 0;

        for (unsigned i = 0; r >= 0 && is_torn && i < READS_MAX; i++) {
                r = device_region_read_control(
                        fd, offsetof(struct region_control, action), &found, sizeof(found));
                if (r >= 0)
                        r = device_region_read_control(fd, AT(sequence), &after, sizeof(after));
                is_torn = r < 0 || found.sequence % 2 != 0 || found.sequence != after;
        }
        if (r < 0)
                return r;
        *ret = check(&found, is_torn);
        return 0;
}

int region_action_cancel(int fd, uint64_t id)
{
        return device_region_write_control(fd, AT(cancel), &id, sizeof(id));
}
