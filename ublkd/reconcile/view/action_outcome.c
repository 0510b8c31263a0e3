/* SPDX-License-Identifier: MIT */
/* What has become of an action.
 *
 * Nothing here depends on what happened to ublkd since: an action is RUNNING in the database before a worker is asked for
 * it, and the worker notes its id in the region before it begins. So one that is RUNNING and not in the region was never
 * begun, or the region is another one; and one that is PENDING has an id that another database has given to another one,
 * if the region has it. */
#include "ublkd/reconcile/view/action_outcome.h"

#include <errno.h>

static struct action_outcome end(enum device_action_state state, enum condition_reason reason)
{
        return (struct action_outcome){.step = ACTION_STEP_END, .state = state, .reason = reason};
}

/* The client who wanted it to end does not read of a failure. */
static struct action_outcome fail(const struct action_view *view, enum condition_reason reason)
{
        if (view->action->cancel_requested)
                return end(DEVICE_ACTION_CANCELLED, REASON_ACTION_CANCELLED);
        return end(DEVICE_ACTION_FAILED, reason);
}

/* It goes on, as far as is known. */
static struct action_outcome of_unknown(const struct action_view *view)
{
        struct action_outcome outcome = {.step = ACTION_STEP_FOLLOW};

        if (!view->action->cancel_requested || !view->cancel_overdue)
                return outcome;
        outcome = end(DEVICE_ACTION_CANCELLED, REASON_ACTION_CANCELLED);
        outcome.unconfirmed = true;
        return outcome;
}

/* As after the loss of the database. */
static bool goes_on_with_another(const struct action_view *view)
{
        return view->report && view->report->state == REGION_ACTION_RUNNING
               && view->report->worker == view->worker;
}

static struct action_outcome of_pending(const struct action_view *view)
{
        if (view->action->cancel_requested)
                return end(DEVICE_ACTION_CANCELLED, REASON_ACTION_CANCELLED);
        if (view->refused)
                return end(DEVICE_ACTION_FAILED, REASON_TEST_TARGET_NOT_ALLOWED);
        if (!view->served)
                return view->overdue ? fail(view, REASON_ACTION_NOT_TAKEN) : (struct action_outcome){};
        if (!view->acts)
                return end(DEVICE_ACTION_FAILED, REASON_ACTION_UNSUPPORTED);
        if (view->unreadable)
                return (struct action_outcome){.step = ACTION_STEP_FOLLOW};
        if (view->report && view->report->id == view->action->id)
                return fail(view, REASON_ACTION_NOT_TAKEN);
        if (!goes_on_with_another(view))
                return (struct action_outcome){.step = ACTION_STEP_ASK};
        return view->overdue ? fail(view, REASON_ACTION_NOT_TAKEN)
                             : (struct action_outcome){.step = ACTION_STEP_CLEAR};
}

/* The region does not have it. */
static struct action_outcome of_missing(const struct action_view *view)
{
        if (!view->served)
                return view->overdue ? fail(view, REASON_ACTION_INTERRUPTED) : (struct action_outcome){};
        if (!view->asked)
                return fail(view, REASON_ACTION_INTERRUPTED);
        if (!view->overdue)
                return (struct action_outcome){.step = ACTION_STEP_FOLLOW};
        return fail(view, REASON_ACTION_NOT_TAKEN);
}

/* A worker that has none but begun it cannot go on with it after its death; a death that is not followed by another worker
 * yet may still be one of a worker that lives. */
static struct action_outcome of_begun(const struct action_view *view)
{
        if (view->served && view->worker == view->report->worker)
                return of_unknown(view);
        if (!view->served && !view->overdue)
                return (struct action_outcome){};
        return fail(view, REASON_ACTION_INTERRUPTED);
}

struct action_outcome action_outcome(const struct action_view *view)
{
        if (view->action->state == DEVICE_ACTION_PENDING)
                return of_pending(view);
        if (view->unreadable)
                return of_unknown(view);
        if (!view->report || view->report->id != view->action->id)
                return of_missing(view);
        switch (view->report->state) {
        case REGION_ACTION_DONE:
                return end(DEVICE_ACTION_SUCCEEDED, REASON_ACTION_SUCCEEDED);
        case REGION_ACTION_FAILED: /* EOPNOTSUPP: a worker of an earlier version, or with other options */
                return fail(view,
                        view->report->error == EOPNOTSUPP ? REASON_ACTION_UNSUPPORTED : REASON_ACTION_FAILED);
        case REGION_ACTION_CANCELLED: /* without a client who wanted it, the worker lies */
                return fail(view, REASON_ACTION_FAILED);
        case REGION_ACTION_LEFT:
                return fail(view, REASON_ACTION_INTERRUPTED);
        default:
                return of_begun(view);
        }
}
