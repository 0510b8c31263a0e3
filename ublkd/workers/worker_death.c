/* SPDX-License-Identifier: MIT */
/* How a worker ended, in words. */
#include "ublkd/workers/worker_death.h"

#include <stdio.h>
#include <string.h>

void worker_death_describe(const siginfo_t *info, enum worker_fault fault, const char *words, bool adopted,
        struct worker_death *ret)
{
        const char *name;

        *ret = (struct worker_death){.code = -1, .fault = fault};
        if (info) {
                ret->by_signal = info->si_code != CLD_EXITED;
                ret->code = info->si_status;
        }
        if (fault != WORKER_FAULT_NONE)
                snprintf(ret->sentence, sizeof(ret->sentence), "was killed by ublkd: %s", words);
        else if (!info)
                snprintf(ret->sentence, sizeof(ret->sentence), "is gone (%s)",
                        adopted ? "it was not our child" : "a debugger has its status");
        else if (!ret->by_signal)
                snprintf(ret->sentence, sizeof(ret->sentence), "exited with status %d", ret->code);
        else if ((name = sigabbrev_np(ret->code)))
                snprintf(ret->sentence, sizeof(ret->sentence), "was killed by SIG%s", name);
        else
                snprintf(ret->sentence, sizeof(ret->sentence), "was killed by signal %d", ret->code);
}
