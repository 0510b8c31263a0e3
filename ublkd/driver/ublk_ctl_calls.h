/* SPDX-License-Identifier: MIT */
/* Calls in flight to the control helper: deadlines, and helpers that are given up and replaced. Private to
 * ublk_ctl. Runs on the supervisor's loop. */
#pragma once

#include "ublkd/driver/ublk_ctl_wire.h"

#include <stdbool.h>
#include <sys/queue.h>
#include <systemd/sd-event.h>

enum { CTL_RETIRED_MAX = 16, CTL_LAST_MISSES_MAX = 4 };

struct ctl_calls;
struct ctl_helper;

enum ctl_call_state {
        CTL_CALL_NEW,
        CTL_CALL_WAITING, /* for room in the helper's socket */
        CTL_CALL_SENT,
        CTL_CALL_FINISHED, /* for its turn to be delivered */
        _CTL_CALL_STATE_MAX
};

/* The owner embeds it as the first member of its own, allocated with malloc(), and sets `request`, not its
 * sequence. From ctl_calls_submit() until its delivery it belongs to ctl_calls. */
struct ctl_call {
        struct ctl_request request;
        struct ctl_calls *calls;
        struct ctl_helper *helper;
        TAILQ_ENTRY(ctl_call) link;
        sd_event_source *deadline;
        enum ctl_call_state state;
        bool changes; /* the device of `request`, so that no other such call for it may overtake this one */
        bool cancelled;
        int result;
        union ctl_payload answer; /* what the payload was when the command was done */
};

struct ctl_calls_handlers {
        /* The command came back. True: `request` was changed, send it again under the same deadline. */
        bool (*reconsider)(void *owner, struct ctl_call *call, int result);
        /* It is over, with `result` and `answer`. Takes the call over and frees it. May free ctl_calls. */
        void (*deliver)(void *owner, struct ctl_call *call);
        /* A call that was given up with -ETIMEDOUT and `changes` can have no effect any more: its helper is
         * dead, or the command came back late. May not free ctl_calls. */
        void (*released)(void *owner, uint32_t number);
        /* A helper has reported how far it has got, or (NULL) is lost: of any of them. May not free ctl_calls. */
        void (*greeted)(void *owner, const struct ctl_reply *greeting);
};

/* Create the calls, without a helper. `helper_path` is copied. Return 0 or -ENOMEM. */
int ctl_calls_new(sd_event *event, const char *helper_path, const struct ctl_calls_handlers *handlers,
        void *owner, struct ctl_calls **ret);
/* Free all calls without delivering them, and kill the helpers; wait up to a second for their end. NULL is
 * fine. Return NULL. */
struct ctl_calls *ctl_calls_free(struct ctl_calls *calls);

/* Start the first helper, which greets. Return 0, or -errno: it could not be started. */
int ctl_calls_start(struct ctl_calls *calls);
/* Kill all helpers, without waiting for their end; calls in flight end with -ECONNRESET. */
void ctl_calls_stop(struct ctl_calls *calls);
/* Return whether there is no helper, not even one that was killed and has not ended. */
bool ctl_calls_are_idle(const struct ctl_calls *calls);

/* Return whether the helper that gets the next call is there, and heeds CTL_GUARDED(). */
bool ctl_calls_guard(const struct ctl_calls *calls);

/* Send the call, and start a helper if there is none. Return 0; -EALREADY: it `changes` a device for which
 * such a call was given up and is not released; -EAGAIN: too many helpers hang; other -errno. On a failure
 * the call is still the owner's. */
int ctl_calls_submit(struct ctl_calls *calls, struct ctl_call *call, uint64_t deadline_usec);
/* Cancel the call: it will not be delivered. */
void ctl_call_cancel(struct ctl_call *call);
