/* SPDX-License-Identifier: MIT */
/* The preflight of a restart that is under way, and what came of the last one. */
#pragma once

#include "ublkd/model/reason.h"
#include "ublkd/reconcile/view/user_request.h"

#include <stdint.h>
#include <systemd/sd-event.h>

struct managed_device;
struct worker_proc;

/* Private to device_preflight.c. Zeros: no preflight so far. */
struct restart_preflight {
        struct worker_proc *worker; /* NULL: none under way */
        sd_event_source *timer;
        void (*then)(struct managed_device *device, int result); /* the step that waits for it, or NULL */
        struct user_request request;                             /* that it is made for, or was last */
        uint32_t passed, refused;     /* record->restart of the last preflight with that result; 0: none */
        enum condition_reason reason; /* of the sentence */
        char *sentence;               /* why it was refused; owned */
};
