/* SPDX-License-Identifier: MIT */
/* How a worker ended, in words. */
#pragma once

#include <signal.h>
#include <stdbool.h>

/* Why ublkd has killed a worker. */
enum worker_fault {
        WORKER_FAULT_NONE,     /* it has not, or because another worker was wanted */
        WORKER_FAULT_STAYED,   /* it did not leave */
        WORKER_FAULT_PROTOCOL, /* it broke the protocol, or claimed what its disk does not have */
        _WORKER_FAULT_MAX
};

/* "was killed by SIGKILL", "exited with status 1", "is gone (it was not our child)". */
struct worker_death {
        bool by_signal;
        enum worker_fault fault; /* `sentence` names it */
        int code;                /* signal number or exit status; -1: unknown */
        char sentence[96];
};

/* Describe how a worker ended. info: as waitid(2) gives it; NULL where the cause cannot be known. words: the fault as
 * a clause, or "". adopted: another ublkd has started it. */
void worker_death_describe(const siginfo_t *info, enum worker_fault fault, const char *words, bool adopted,
        struct worker_death *ret);
