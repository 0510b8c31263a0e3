/* SPDX-License-Identifier: MIT */
/* The requests of a device that failed, in its region. */
#include "ublkd/proto/region_errors.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"

#include <errno.h>
#include <string.h>

enum {
        NEWS_USEC = 1000 * 1000, /* the supervisor looks this often, in a flood of errors */
        TRIES = 4,
        ERRNO_MAX = 4095,
};

#define NUMBER_MAX (UINT64_C(1) << 53) /* whole in every JSON number; no disk is as large */

static const int errors[] = {
        [REGION_ERRNO_EIO] = EIO,
        [REGION_ERRNO_ENOSPC] = ENOSPC,
        [REGION_ERRNO_EROFS] = EROFS,
        [REGION_ERRNO_EOPNOTSUPP] = EOPNOTSUPP,
        [REGION_ERRNO_ENOMEM] = ENOMEM,
        [REGION_ERRNO_ETIMEDOUT] = ETIMEDOUT,
        [REGION_ERRNO_EINVAL] = EINVAL,
};
_Static_assert(ARRAY_SIZE(errors) == REGION_ERRNO_OTHER, "every error but the others has a number");

/* ---- for the worker ---- */

static enum region_errno errno_of(int error)
{
        for (unsigned i = 0; i < ARRAY_SIZE(errors); i++)
                if (errors[i] == error)
                        return (enum region_errno)i;
        return REGION_ERRNO_OTHER;
}

void region_errors_begin(struct region_control *control)
{
        for (unsigned i = 0; i < _STATS_OP_MAX; i++) {
                uint32_t *sequence = &control->errors.newest[i].sequence;

                __atomic_store_n(sequence, (*sequence + 1) & ~UINT32_C(1), __ATOMIC_RELEASE);
        }
}

/* If two queues fail at the same time, the details are from one of the two. */
static void note_newest(struct region_error *newest, int error, uint64_t offset, uint32_t length)
{
        uint32_t sequence = __atomic_load_n(&newest->sequence, __ATOMIC_RELAXED);

        if (sequence % 2 != 0
                || !__atomic_compare_exchange_n(&newest->sequence, &sequence, sequence + 1, false,
                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                return;
        __atomic_thread_fence(__ATOMIC_RELEASE);
        __atomic_store_n(&newest->at, clock_usec(CLOCK_REALTIME), __ATOMIC_RELAXED);
        __atomic_store_n(&newest->offset, offset, __ATOMIC_RELAXED);
        __atomic_store_n(&newest->length, length, __ATOMIC_RELAXED);
        __atomic_store_n(&newest->error, (uint32_t)error, __ATOMIC_RELAXED);
        __atomic_store_n(&newest->sequence, sequence + 2, __ATOMIC_RELEASE);
}

static bool is_news(struct region_errors *all)
{
        uint64_t now = clock_usec(CLOCK_MONOTONIC),
                 before = __atomic_load_n(&all->announced_at, __ATOMIC_RELAXED);

        if (before != 0 && now - before < NEWS_USEC)
                return false;
        if (!__atomic_compare_exchange_n(
                    &all->announced_at, &before, now, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
                return false;
        __atomic_add_fetch(&all->changes, 1, __ATOMIC_RELEASE);
        return true;
}

bool region_error_note(
        struct region_control *control, enum stats_op op, int error, uint64_t offset, uint32_t length)
{
        struct region_errors *all = &control->errors;

        __atomic_add_fetch(&all->by_errno[op][errno_of(error)], 1, __ATOMIC_RELAXED);
        if (error == EOPNOTSUPP)
                return false;
        note_newest(&all->newest[op], error, offset, length);
        __atomic_add_fetch(&all->newest[op].count, 1, __ATOMIC_RELEASE);
        return is_news(all);
}

/* ---- for the supervisor ---- */

static int read_part(int fd, size_t offset, void *buffer, size_t size)
{
        return device_region_read_control(fd, offsetof(struct region_control, errors) + offset, buffer, size);
}

static bool is_settled(
        const struct region_error before[_STATS_OP_MAX], const struct region_error after[_STATS_OP_MAX])
{
        for (unsigned i = 0; i < _STATS_OP_MAX; i++)
                if (after[i].sequence % 2 != 0 || before[i].sequence != after[i].sequence)
                        return false;
        return true;
}

static bool is_empty(const struct region_error newest[_STATS_OP_MAX])
{
        for (unsigned i = 0; i < _STATS_OP_MAX; i++)
                if (newest[i].count > 0)
                        return false;
        return true;
}

/* Most regions have no errors, and are read once. A worker that keeps writing may tear it; it is
 * only shown. */
static int read_newest(int fd, struct region_error ret[_STATS_OP_MAX])
{
        const size_t offset = offsetof(struct region_errors, newest), size = _STATS_OP_MAX * sizeof(*ret);
        struct region_error before[_STATS_OP_MAX];
        int r = read_part(fd, offset, ret, size);

        for (unsigned i = 0; r >= 0 && i < TRIES && !is_empty(ret); i++) {
                memcpy(before, ret, size);
                r = read_part(fd, offset, ret, size);
                if (r >= 0 && is_settled(before, ret))
                        break;
        }
        return r;
}

static uint64_t bounded(uint64_t number)
{
        return number < NUMBER_MAX ? number : NUMBER_MAX;
}

static struct error_report report_of(const struct region_error *newest, uint64_t now)
{
        return (struct error_report){
                .count = bounded(newest->count),
                .reported = newest->reported,
                .at = newest->at < now ? newest->at : now,
                .offset = bounded(newest->offset),
                .length = newest->length,
                .error = newest->error >= 1 && newest->error <= ERRNO_MAX ? (int)newest->error : EIO,
        };
}

int region_errors_read(int fd, struct error_report ret[_STATS_OP_MAX])
{
        struct region_error newest[_STATS_OP_MAX];
        uint64_t now = clock_usec(CLOCK_REALTIME);

        int r = read_newest(fd, newest);

        if (r < 0)
                return r;
        for (unsigned i = 0; i < _STATS_OP_MAX; i++)
                ret[i] = report_of(&newest[i], now);
        return 0;
}

int region_errors_read_counts(int fd, uint64_t ret[_STATS_OP_MAX][_REGION_ERRNO_MAX])
{
        uint64_t counts[_STATS_OP_MAX][_REGION_ERRNO_MAX];
        int r = read_part(fd, offsetof(struct region_errors, by_errno), counts, sizeof(counts));

        if (r < 0)
                return r;
        for (unsigned op = 0; op < _STATS_OP_MAX; op++)
                for (unsigned i = 0; i < _REGION_ERRNO_MAX; i++)
                        ret[op][i] = bounded(counts[op][i]);
        return 0;
}

int region_error_mark_reported(int fd, enum stats_op op, uint64_t count)
{
        return device_region_write_control(fd,
                offsetof(struct region_control, errors.newest) + op * sizeof(struct region_error)
                        + offsetof(struct region_error, reported),
                &count, sizeof(count));
}
