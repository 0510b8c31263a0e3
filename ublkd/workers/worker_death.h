/* SPDX-License-Identifier: MIT */
/* How a worker ended, in words. */
#pragma once

#include <signal.h>
#include <stdbool.h>

/* "was killed by SIGKILL", "exited with status 1", "is gone (it was not our child)". */
struct worker_death {
        bool by_signal;
        bool by_us; /* it broke the protocol, or did not leave: `sentence` says so */
        int code;   /* signal number or exit status; -1: unknown */
        char sentence[96];
};

/* Describe how a worker ended. info: as waitid(2) gives it; NULL where the cause cannot be known. fault: why
 * ublkd has killed it, or "". adopted: another ublkd has started it. */
void worker_death_describe(const siginfo_t *info, const char *fault, bool adopted, struct worker_death *ret);
