/* SPDX-License-Identifier: MIT */
/* PURE: what has become of an action, by what the region says and which worker serves. */
#pragma once

#include "ublkd/model/device_action.h"
#include "ublkd/proto/region_action.h"

/* What is known of an action that is under way. */
struct action_view {
        const struct device_action *action;
        const struct action_report *report; /* NULL: there is none */
        bool unreadable;                    /* for now the region cannot be read: it may have it */
        bool served;                        /* a worker serves the disk */
        bool acts;                          /* its program knows of actions */
        bool refused;                       /* the action is for tests, and this ublkd allows none */
        uint64_t worker;                    /* when it was started; 0: not known */
        bool asked;                         /* this ublkd has sent the action to this very worker */
        bool overdue; /* that was long ago; or, of a disk that is not served, nothing will change soon; or, of an action
                       * that is PENDING, the worker has gone on with another one for too long */
        bool cancel_overdue; /* the worker was asked to end it long ago */
};

enum action_step {
        ACTION_STEP_NONE,
        ACTION_STEP_ASK,    /* ask the worker for it */
        ACTION_STEP_FOLLOW, /* it goes on */
        ACTION_STEP_CLEAR,  /* end the one that the worker goes on with, of which no client knows any more */
        ACTION_STEP_END,
};

struct action_outcome {
        enum action_step step;
        enum device_action_state state; /* of END, with the reason */
        enum condition_reason reason;
        bool unconfirmed; /* its worker may go on with it */
};

/* Return what is to be done about an action. */
struct action_outcome action_outcome(const struct action_view *view);
