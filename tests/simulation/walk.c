/* SPDX-License-Identifier: MIT */
/* The rules that no answer may break, checked over every combination of facts. */
#include "walk.h"

#include <stddef.h>

static bool is_served(const struct plan_facts *f)
{
        return f->kernel == KERNEL_LIVE && f->worker == PLAN_WORKER_SERVING;
}

/* Present, whatever else. */
static bool wants_it(const struct plan_facts *f)
{
        return f->want == WANT_PRESENT || f->want == WANT_RENEWED || f->want == WANT_EXTENDED
               || f->want == WANT_GROWN;
}

static bool has_no_worker(const struct plan_facts *f)
{
        return f->worker == PLAN_WORKER_NONE;
}

/* A process or a command that will report, or that attempt.c watches. */
static bool is_under_way(const struct plan_facts *f)
{
        return f->worker == PLAN_WORKER_STARTING || f->worker == PLAN_WORKER_FETCHING
               || f->worker == PLAN_WORKER_LEAVING
               || (f->kernel == KERNEL_LIVE && (has_no_worker(f) || f->worker == PLAN_WORKER_PARAMS));
}

static bool is_as_wanted(const struct plan_facts *f)
{
        switch (f->want) {
        case WANT_ABSENT:
                return f->kernel == KERNEL_ABSENT && has_no_worker(f);
        case WANT_RENEWED:
        case WANT_EXTENDED:
        case WANT_GROWN:
                return false;
        case WANT_HELD:
                return is_served(f)
                       || (has_no_worker(f) && (f->kernel == KERNEL_ABSENT || f->kernel == KERNEL_DOWN));
        default:
                return is_served(f);
        }
}

/* Stopping a disk fails I/O: only where the user asked for it or nothing else is left. */
static bool may_stop_dev(const struct plan_facts *f)
{
        if (f->kernel != KERNEL_LIVE && f->kernel != KERNEL_DOWN)
                return false;
        switch (f->want) {
        case WANT_ABSENT:
                return true;
        case WANT_HELD:
                return false;
        case WANT_GIVEN_UP:
                return f->kernel == KERNEL_DOWN || (has_no_worker(f) && f->trouble == TROUBLE_STUCK);
        default:
                return (f->kernel == KERNEL_DOWN && f->trouble == TROUBLE_HOPELESS)
                       || (f->kernel == KERNEL_LIVE && has_no_worker(f) && f->trouble == TROUBLE_STUCK);
        }
}

/* STOP_DEV failed, and an opener may be the cause. */
static bool is_held_up(const struct plan_facts *f)
{
        return f->trouble == TROUBLE_STUCK && !has_no_worker(f)
               && (f->kernel == KERNEL_DOWN || (f->kernel == KERNEL_LIVE && f->want == WANT_ABSENT))
               && (f->want == WANT_ABSENT || f->want == WANT_GIVEN_UP);
}

/* A step that makes or revives a disk needs this much to be there. */
static bool may_build(const struct plan_facts *f, enum plan_action action)
{
        static const struct {
                bool allowed;
                enum plan_kernel kernel, or_kernel;
                enum plan_worker worker;
        } needs[_ACTION_MAX] = {
                [ACTION_SPAWN] = {true, KERNEL_ABSENT, KERNEL_DOWN,   PLAN_WORKER_NONE  },
                [ACTION_ADD_DEV] = {true, KERNEL_ABSENT, KERNEL_ABSENT, PLAN_WORKER_PARAMS},
                [ACTION_SET_PARAMS] = {true, KERNEL_ADDED,  KERNEL_ADDED,  PLAN_WORKER_PARAMS},
                [ACTION_START_DEV] = {true, KERNEL_ADDED,  KERNEL_ADDED,  PLAN_WORKER_READY },
                [ACTION_BEGIN_RECOVERY] = {true, KERNEL_DOWN,   KERNEL_DOWN,   PLAN_WORKER_PARAMS},
                [ACTION_END_RECOVERY] = {true, KERNEL_DOWN,   KERNEL_DOWN,   PLAN_WORKER_READY },
                [ACTION_MARK_SERVING] = {true, KERNEL_LIVE,   KERNEL_LIVE,   PLAN_WORKER_READY },
        };

        if (!needs[action].allowed || f->want == WANT_ABSENT || f->trouble == TROUBLE_STUCK) {
                /* where nothing but another try is left, being stuck changes nothing */
                if (!needs[action].allowed || f->want == WANT_ABSENT || action != ACTION_SPAWN)
                        return false;
        }
        if (f->want == WANT_HELD && action != ACTION_MARK_SERVING)
                return false;
        return (f->kernel == needs[action].kernel || f->kernel == needs[action].or_kernel)
               && f->worker == needs[action].worker;
}

static const char *broken_wait(const struct plan_facts *f)
{
        if (!is_under_way(f))
                return "WAIT is returned only while something is under way";
        if (f->trouble == TROUBLE_STUCK && f->want != WANT_HELD)
                return "being stuck is never answered by waiting on";
        if (f->want == WANT_ABSENT && (f->kernel == KERNEL_LIVE || f->kernel == KERNEL_DOWN))
                return "an unwanted disk is stopped without waiting";
        if (f->want == WANT_GIVEN_UP && f->kernel == KERNEL_DOWN)
                return "I/O that has waited too long waits no longer";
        return NULL;
}

static const char *broken_stop_worker(const struct plan_facts *f)
{
        if (has_no_worker(f))
                return "STOP_WORKER needs a worker";
        if (f->worker == PLAN_WORKER_LEAVING && f->trouble != TROUBLE_STUCK)
                return "a worker that leaves is not killed before it is stuck";
        if (f->want == WANT_ABSENT && f->kernel == KERNEL_LIVE && f->trouble != TROUBLE_STUCK)
                return "an unwanted live disk is stopped first";
        if (wants_it(f) && f->trouble == TROUBLE_NONE && f->worker != PLAN_WORKER_SERVING
                && f->kernel != KERNEL_ABSENT)
                return "a worker that gets on is not killed";
        if (wants_it(f) && f->trouble == TROUBLE_NONE && f->kernel == KERNEL_ABSENT
                && (f->worker == PLAN_WORKER_STARTING || f->worker == PLAN_WORKER_PARAMS))
                return "a worker that gets on is not killed";
        return NULL;
}

static const char *broken_rule(const struct plan_facts *f, enum plan_action action)
{
        if (is_as_wanted(f) != (action == ACTION_NOTHING))
                return "NOTHING is returned exactly when all is as wanted";
        if (f->want == WANT_RENEWED && is_served(f))
                return action == (f->trouble == TROUBLE_STUCK ? ACTION_STOP_WORKER : ACTION_RETIRE_WORKER)
                               ? NULL
                               : "a worker that is to be replaced may finish, and is killed once it is stuck";
        if (f->want == WANT_EXTENDED && is_served(f))
                return action == ACTION_EXTEND_WORKER ? NULL : "the worker learns a new size first";
        if (f->want == WANT_GROWN && is_served(f))
                return action == ACTION_GROW_DISK ? NULL : "a disk whose worker can serve more grows";
        if (action == ACTION_EXTEND_WORKER || action == ACTION_GROW_DISK)
                return "only a disk that is served grows";
        if (action == ACTION_RETIRE_WORKER)
                return "only a worker that is to be replaced is retired";
        if (f->want != WANT_ABSENT && is_served(f))
                return action == ACTION_NOTHING ? NULL : "a served disk that is wanted is never touched";
        if (is_held_up(f) && action != ACTION_STOP_WORKER)
                return "a disk that does not stop loses its worker";
        if (wants_it(f) && f->kernel == KERNEL_DOWN && f->trouble == TROUBLE_HOPELESS
                && f->worker != PLAN_WORKER_LEAVING && action != ACTION_STOP_DEV)
                return "what is hopeless is not tried again";
        switch (action) {
        case ACTION_NOTHING:
                return NULL;
        case ACTION_WAIT:
                return broken_wait(f);
        case ACTION_STOP_DEV:
                return may_stop_dev(f) ? NULL : "STOP_DEV only where it is asked for or nothing else is left";
        case ACTION_DEL_DEV:
                return f->kernel == KERNEL_ADDED && has_no_worker(f)
                               ? NULL
                               : "DEL_DEV only when stopped and without a worker";
        case ACTION_STOP_WORKER:
                return broken_stop_worker(f);
        default:
                return may_build(f, action) ? NULL : "a step that builds needs what it builds on";
        }
}

const char *walk_all_facts(plan_function decide, struct plan_facts *ret_facts)
{
        for (unsigned want = 0; want < _WANT_MAX; want++)
                for (unsigned kernel = 0; kernel < _KERNEL_MAX; kernel++)
                        for (unsigned worker = 0; worker < _PLAN_WORKER_MAX; worker++)
                                for (unsigned trouble = 0; trouble < _TROUBLE_MAX; trouble++) {
                                        struct plan_facts facts = {.want = want,
                                                .kernel = kernel,
                                                .worker = worker,
                                                .trouble = trouble};
                                        enum plan_action action = decide(&facts);
                                        const char *rule = action < _ACTION_MAX ? broken_rule(&facts, action)
                                                                                : "an answer is an action";

                                        if (rule) {
                                                *ret_facts = facts;
                                                return rule;
                                        }
                                }
        return NULL;
}
