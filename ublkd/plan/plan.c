/* SPDX-License-Identifier: MIT */
/* The one table that decides what happens to a device.
 *
 * Read it from the top: the first row that matches wins, and a column that a row does not name matches
 * anything. Four thoughts carry it:
 *  - Worker first, device second: the kernel learns of a disk only when its backend is open, and a disk is
 *    deleted only when no worker has it open.
 *  - A disk is stopped before it is deleted, always: DEL_DEV stops inside a lock of the whole machine, and
 * one stuck disk would freeze all others.
 *  - Inconsistent states are not repaired; they are torn down to a known-good state: kill the worker (by
 *    contract that loses nothing), or stop the disk (that fails I/O, so only where nothing else is left).
 *  - There is a second worker only after the first is gone: SPAWN is in rows without a worker only. */
#include "ublkd/plan/plan.h"

#include <stddef.h>

#define IS(value) (1U << (value))
#define NOT(value) (~IS(value))

struct plan_row {
        unsigned want, kernel, worker, trouble; /* sets of IS(…); 0: any */
        enum plan_action action;
};

/* clang-format off */
static const struct plan_row table[] = {
        /* No disk is wanted. A STOP_DEV that does not end waits for answers of the worker: take it away. */
        { .want = IS(WANT_ABSENT), .kernel = IS(KERNEL_LIVE) | IS(KERNEL_DOWN), .worker = NOT(PLAN_WORKER_NONE),
          .trouble = IS(TROUBLE_STUCK), .action = ACTION_STOP_WORKER },
        { .want = IS(WANT_ABSENT), .kernel = IS(KERNEL_LIVE) | IS(KERNEL_DOWN), .action = ACTION_STOP_DEV },

        /* Waiting I/O is to be failed. */
        { .want = IS(WANT_GIVEN_UP), .kernel = IS(KERNEL_DOWN), .worker = NOT(PLAN_WORKER_NONE),
          .trouble = IS(TROUBLE_STUCK), .action = ACTION_STOP_WORKER },
        { .want = IS(WANT_GIVEN_UP), .kernel = IS(KERNEL_DOWN), .action = ACTION_STOP_DEV },

        /* A worker that is exiting takes precedence: wait for it. */
        { .worker = IS(PLAN_WORKER_LEAVING), .trouble = IS(TROUBLE_STUCK), .action = ACTION_STOP_WORKER },
        { .worker = IS(PLAN_WORKER_LEAVING), .action = ACTION_WAIT },

        { .want = IS(WANT_ABSENT), .kernel = IS(KERNEL_ABSENT), .worker = IS(PLAN_WORKER_NONE), .action = ACTION_NOTHING },
        { .want = IS(WANT_ABSENT), .kernel = IS(KERNEL_ADDED), .worker = IS(PLAN_WORKER_NONE), .action = ACTION_DEL_DEV },
        { .want = IS(WANT_ABSENT), .action = ACTION_STOP_WORKER },

        /* Held: waiting I/O goes on waiting. A live disk is the business of the rows at the end. */
        { .want = IS(WANT_HELD), .kernel = IS(KERNEL_ABSENT) | IS(KERNEL_DOWN), .worker = IS(PLAN_WORKER_NONE), .action = ACTION_NOTHING },
        { .want = IS(WANT_HELD), .kernel = IS(KERNEL_ADDED), .worker = IS(PLAN_WORKER_NONE), .action = ACTION_DEL_DEV },
        { .want = IS(WANT_HELD), .kernel = IS(KERNEL_LIVE), .worker = IS(PLAN_WORKER_NONE), .action = ACTION_WAIT },
        { .want = IS(WANT_HELD), .kernel = NOT(KERNEL_LIVE), .action = ACTION_STOP_WORKER },

        /* From here on a live disk is wanted. First the ways out of trouble: start clean. */
        { .kernel = IS(KERNEL_DOWN), .trouble = IS(TROUBLE_HOPELESS), .action = ACTION_STOP_DEV },
        { .kernel = IS(KERNEL_LIVE), .worker = IS(PLAN_WORKER_NONE), .trouble = IS(TROUBLE_STUCK), .action = ACTION_STOP_DEV },
        { .worker = IS(PLAN_WORKER_STARTING) | IS(PLAN_WORKER_PARAMS) | IS(PLAN_WORKER_FETCHING) | IS(PLAN_WORKER_READY),
          .trouble = IS(TROUBLE_STUCK), .action = ACTION_STOP_WORKER },

        { .worker = IS(PLAN_WORKER_STARTING), .action = ACTION_WAIT },

        /* There is no disk yet. A worker that got GO then belongs to a disk that is gone. */
        { .kernel = IS(KERNEL_ABSENT), .worker = IS(PLAN_WORKER_NONE), .action = ACTION_SPAWN },
        { .kernel = IS(KERNEL_ABSENT), .worker = IS(PLAN_WORKER_PARAMS), .action = ACTION_ADD_DEV },
        { .kernel = IS(KERNEL_ABSENT), .action = ACTION_STOP_WORKER },

        /* Added. Without a worker it is a leftover, and whether it was started before cannot be seen. */
        { .kernel = IS(KERNEL_ADDED), .worker = IS(PLAN_WORKER_NONE), .action = ACTION_DEL_DEV },
        { .kernel = IS(KERNEL_ADDED), .worker = IS(PLAN_WORKER_PARAMS), .action = ACTION_SET_PARAMS },
        { .kernel = IS(KERNEL_ADDED), .worker = IS(PLAN_WORKER_READY), .action = ACTION_START_DEV },

        /* Lost its worker. */
        { .kernel = IS(KERNEL_DOWN), .worker = IS(PLAN_WORKER_NONE), .action = ACTION_SPAWN },
        { .kernel = IS(KERNEL_DOWN), .worker = IS(PLAN_WORKER_PARAMS), .action = ACTION_BEGIN_RECOVERY },
        { .kernel = IS(KERNEL_DOWN), .worker = IS(PLAN_WORKER_READY), .action = ACTION_END_RECOVERY },

        /* Live, and to be served by another worker. From when it is gone on these are the rows above. */
        { .want = IS(WANT_RENEWED), .kernel = IS(KERNEL_LIVE), .worker = IS(PLAN_WORKER_SERVING),
          .trouble = IS(TROUBLE_STUCK), .action = ACTION_STOP_WORKER },
        { .want = IS(WANT_RENEWED), .kernel = IS(KERNEL_LIVE), .worker = IS(PLAN_WORKER_SERVING), .action = ACTION_RETIRE_WORKER },

        /* Live, and to grow. */
        { .want = IS(WANT_EXTENDED), .kernel = IS(KERNEL_LIVE), .worker = IS(PLAN_WORKER_SERVING), .action = ACTION_EXTEND_WORKER },
        { .want = IS(WANT_GROWN), .kernel = IS(KERNEL_LIVE), .worker = IS(PLAN_WORKER_SERVING), .action = ACTION_GROW_DISK },

        /* Live. Without a worker that has its queues, the kernel has not noticed a death yet. */
        { .kernel = IS(KERNEL_LIVE), .worker = IS(PLAN_WORKER_READY), .action = ACTION_MARK_SERVING },
        { .kernel = IS(KERNEL_LIVE), .worker = IS(PLAN_WORKER_SERVING), .action = ACTION_NOTHING },

        /* The disk was stopped or taken away under it. */
        { .worker = IS(PLAN_WORKER_SERVING), .action = ACTION_STOP_WORKER },

        { .action = ACTION_WAIT },
};
/* clang-format on */

static bool in(unsigned set, unsigned value)
{
        return !set || (set & IS(value));
}

enum plan_action plan(const struct plan_facts *facts)
{
        const struct plan_row *row = table;

        while (!in(row->want, facts->want) || !in(row->kernel, facts->kernel)
                || !in(row->worker, facts->worker) || !in(row->trouble, facts->trouble))
                row++; /* the last row matches everything */
        return row->action;
}

/* A worker that is starting may have been adopted, and turn out to serve. */
enum plan_kernel plan_kernel(enum plan_kernel state, bool recoverable, enum plan_worker worker)
{
        bool abandoned = worker == PLAN_WORKER_NONE || worker == PLAN_WORKER_PARAMS;

        return state == KERNEL_LIVE && recoverable && abandoned ? KERNEL_DOWN : state;
}

/* Whether a live disk appears to have no worker. */
static bool is_unserved(const struct plan_wish *wish)
{
        return wish->kernel == KERNEL_LIVE
               && (wish->worker == PLAN_WORKER_NONE || wish->worker == PLAN_WORKER_LEAVING);
}

static bool is_served(const struct plan_wish *wish)
{
        return wish->kernel == KERNEL_LIVE && wish->worker == PLAN_WORKER_SERVING;
}

/* A disk that is DOWN was Live once, so it needs no note that says so. */
static bool is_held(const struct plan_wish *wish)
{
        return wish->manual && !wish->recover_requested
               && (wish->kernel == KERNEL_DOWN
                       || (wish->held && (wish->kernel != KERNEL_LIVE || is_unserved(wish))));
}

static bool may_give_up(const struct plan_wish *wish)
{
        return wish->give_up_after > 0 && wish->lost_since > 0 && wish->kernel == KERNEL_DOWN;
}

static bool is_unwanted(const struct plan_wish *wish)
{
        return wish->deleting || !wish->enabled || wish->kernel_is_old || wish->worker_is_old;
}

/* Return whether the disk goes on being served, as far as is known. One of another epoch never is again. */
static bool is_handed_over(const struct plan_wish *wish)
{
        bool has_disk = wish->kernel == KERNEL_LIVE || wish->kernel == KERNEL_DOWN;
        bool gets_worker = wish->worker != PLAN_WORKER_NONE || !is_held(wish);

        return has_disk && gets_worker && !wish->kernel_is_old && !wish->worker_is_old
               && !(is_served(wish) && !wish->worker_is_outdated);
}

static bool is_put_off(const struct plan_wish *wish)
{
        return wish->now < wish->handover_until && !wish->forced && is_handed_over(wish);
}

/* now >= since + after, without overflow. */
static bool has_passed(uint64_t since, uint64_t after, uint64_t now)
{
        return now >= since && now - since >= after;
}

static enum plan_want want_of_served(const struct plan_wish *wish)
{
        if (wish->worker_is_outdated)
                return WANT_RENEWED;
        if (wish->size_of_disk == 0)
                return WANT_PRESENT;
        /* Smaller than its disk: that grew late, by an UPDATE_SIZE that was given up. */
        if (wish->size_of_worker < wish->size_wanted || wish->size_of_worker < wish->size_of_disk)
                return WANT_EXTENDED;
        return wish->size_wanted > wish->size_of_disk ? WANT_GROWN : WANT_PRESENT;
}

enum plan_want plan_want(const struct plan_wish *wish)
{
        if (is_unwanted(wish) && !is_put_off(wish))
                return WANT_ABSENT;
        if (may_give_up(wish) && has_passed(wish->lost_since, wish->give_up_after, wish->now))
                return WANT_GIVEN_UP;
        if (is_held(wish))
                return WANT_HELD;
        return is_served(wish) ? want_of_served(wish) : WANT_PRESENT;
}

static uint64_t gives_up_at(const struct plan_wish *wish)
{
        if (!may_give_up(wish) || has_passed(wish->lost_since, wish->give_up_after, wish->now)
                || wish->give_up_after > UINT64_MAX - wish->lost_since)
                return UINT64_MAX;
        return wish->lost_since + wish->give_up_after;
}

uint64_t plan_want_until(const struct plan_wish *wish)
{
        uint64_t at = gives_up_at(wish);

        if (!is_unwanted(wish))
                return at;
        if (!is_put_off(wish))
                return UINT64_MAX;
        return at < wish->handover_until ? at : wish->handover_until;
}

static const char *name_in(const char *const *names, size_t count, unsigned value)
{
        return value < count ? names[value] : "unknown";
}

const char *plan_action_to_string(enum plan_action action)
{
        static const char *const names[_ACTION_MAX] = {
                [ACTION_NOTHING] = "nothing",
                [ACTION_WAIT] = "wait",
                [ACTION_SPAWN] = "start a worker",
                [ACTION_ADD_DEV] = "add the disk",
                [ACTION_SET_PARAMS] = "set the disk's parameters",
                [ACTION_START_DEV] = "start the disk",
                [ACTION_BEGIN_RECOVERY] = "begin the recovery",
                [ACTION_END_RECOVERY] = "end the recovery",
                [ACTION_MARK_SERVING] = "report to the worker that the disk is live",
                [ACTION_STOP_DEV] = "stop the disk",
                [ACTION_DEL_DEV] = "delete the disk",
                [ACTION_STOP_WORKER] = "stop the worker",
                [ACTION_EXTEND_WORKER] = "send the worker the new size",
                [ACTION_GROW_DISK] = "grow the disk",
                [ACTION_RETIRE_WORKER] = "have the worker finish its requests and leave",
        };

        return name_in(names, _ACTION_MAX, action);
}

const char *plan_want_to_string(enum plan_want want)
{
        static const char *const names[_WANT_MAX] = {
                [WANT_PRESENT] = "present",
                [WANT_ABSENT] = "absent",
                [WANT_HELD] = "held",
                [WANT_GIVEN_UP] = "given up",
                [WANT_RENEWED] = "renewed",
                [WANT_EXTENDED] = "extended",
                [WANT_GROWN] = "grown",
        };

        return name_in(names, _WANT_MAX, want);
}

const char *plan_kernel_to_string(enum plan_kernel kernel)
{
        static const char *const names[_KERNEL_MAX] = {
                [KERNEL_ABSENT] = "absent",
                [KERNEL_ADDED] = "added",
                [KERNEL_LIVE] = "live",
                [KERNEL_DOWN] = "down",
        };

        return name_in(names, _KERNEL_MAX, kernel);
}

const char *plan_worker_to_string(enum plan_worker worker)
{
        static const char *const names[_PLAN_WORKER_MAX] = {
                [PLAN_WORKER_NONE] = "none",
                [PLAN_WORKER_STARTING] = "starting",
                [PLAN_WORKER_PARAMS] = "open",
                [PLAN_WORKER_FETCHING] = "fetching",
                [PLAN_WORKER_READY] = "ready",
                [PLAN_WORKER_SERVING] = "serving",
                [PLAN_WORKER_LEAVING] = "leaving",
        };

        return name_in(names, _PLAN_WORKER_MAX, worker);
}
