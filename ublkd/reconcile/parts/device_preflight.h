/* SPDX-License-Identifier: MIT */
/* A restart on trial: whether the next worker could take over, before the one that serves leaves. */
#pragma once

#include "ublkd/reconcile/view/user_words.h"
#include "ublkd/workers/worker_proc.h"

struct managed_device;

/* Private to device_preflight.c. Zeros: no trial so far. */
struct restart_trial {
        struct worker_proc *worker; /* NULL: none under way */
        sd_event_source *timer;
        void (*then)(struct managed_device *device, int result); /* the step that waits for it, or NULL */
        struct user_words words;                                 /* that it is made for, or was last */
        uint32_t passed, refused; /* record->restart of the last trial with that result; 0: none */
        char *sentence;           /* why it was refused; owned */
};

/* Try whether the next worker could take over, unless that is known. Then call `then` once, possibly before this
 * returns: 0; -ECANCELED: it could not, and the restart is refused and reported; -ECONNRESET: given up. */
void device_trial_begin(struct managed_device *device, const struct device_record *record,
        void (*then)(struct managed_device *device, int result));
/* End the trial: the serving worker has died, so the result does not matter. */
void device_trial_give_up(struct managed_device *device);
/* Return why the restart that was asked for last was refused; NULL: it was not. Valid until the next one. */
const char *device_trial_refusal(const struct managed_device *device, const struct device_record *record);
/* Free what the trial owns. */
void device_trial_forget(struct managed_device *device);
