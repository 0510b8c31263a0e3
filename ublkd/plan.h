/* PURE: what is wanted and what is there → the one next step. No I/O header may be included here. */
#pragma once

#include <stdbool.h>

enum plan_want {
        WANT_PRESENT,  /* a live disk */
        WANT_ABSENT,   /* no disk: deleted, disabled, or to be made anew (the kernel's disk has an old epoch) */
        WANT_HELD,     /* a manual device that lost its worker: leave what is there until someone says recover */
        WANT_GIVEN_UP, /* waiting I/O has waited for recovery.giveUpAfter: fail it, then start anew */
        _WANT_MAX
};

enum plan_kernel {
        KERNEL_ABSENT, /* no device of ours under our number (a stranger's device counts as absent) */
        KERNEL_ADDED,  /* DEAD: added and not started, or stopped */
        KERNEL_LIVE,
        KERNEL_DOWN, /* QUIESCED or FAIL_IO: lost its worker, can be recovered */
        _KERNEL_MAX
};

enum plan_worker {
        PLAN_WORKER_NONE,
        PLAN_WORKER_STARTING, /* spawned or adopted, has not reported parameters */
        PLAN_WORKER_PARAMS,   /* backend open, waits for GO */
        PLAN_WORKER_FETCHING, /* GO sent */
        PLAN_WORKER_READY,    /* every queue fetched */
        PLAN_WORKER_SERVING,
        PLAN_WORKER_LEAVING, /* on its way out */
        _PLAN_WORKER_MAX
};

/* Whether waiting has lasted too long, or a step keeps failing. */
enum plan_trouble {
        TROUBLE_NONE,
        TROUBLE_STUCK,    /* a wait passed its deadline, or a step failed again and again */
        TROUBLE_HOPELESS, /* the kernel says that this disk cannot be recovered (EINVAL): start clean */
        _TROUBLE_MAX
};

enum plan_action {
        ACTION_NOTHING,     /* as wanted */
        ACTION_WAIT,        /* something is under way and will report, or its deadline will pass */
        ACTION_SPAWN,
        ACTION_ADD_DEV,
        ACTION_SET_PARAMS,  /* SET_PARAMS, then GO */
        ACTION_START_DEV,
        ACTION_BEGIN_RECOVERY, /* compare parameters, START_USER_RECOVERY, then GO */
        ACTION_END_RECOVERY,
        ACTION_MARK_SERVING, /* tell the worker LIVE */
        ACTION_STOP_DEV,
        ACTION_DEL_DEV,
        ACTION_STOP_WORKER,
        _ACTION_MAX
};

struct plan_facts {
        enum plan_want want;
        enum plan_kernel kernel;
        enum plan_worker worker;
        enum plan_trouble trouble;
};

/* Total: every combination has an answer. */
enum plan_action plan(const struct plan_facts *facts);

const char *plan_action_to_string(enum plan_action action);
const char *plan_want_to_string(enum plan_want want);
const char *plan_kernel_to_string(enum plan_kernel kernel);
const char *plan_worker_to_string(enum plan_worker worker);
