/* SPDX-License-Identifier: MIT */
/* A clock of the loop that stands still while the loop waits for a CPU. */
#include "api/http/own_time.h"

#include "ublkd/base/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

int own_time_open(void)
{
        return open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

/* Of "RUNNING WAITING SLICES", the time for which it was ready to run and did not. */
static uint64_t waited_nsec(int clock)
{
        char text[80];
        uint64_t running, waiting;
        ssize_t n = clock >= 0 ? pread(clock, text, sizeof(text) - 1, 0) : -1;

        if (n <= 0)
                return 0;
        text[n] = '\0';
        return sscanf(text, "%" SCNu64 " %" SCNu64, &running, &waiting) == 2 ? waiting : 0;
}

uint64_t own_time_now(int clock)
{
        uint64_t waited = waited_nsec(clock) / 1000; /* first: what comes between the two reads counts as own time */

        return monotonic_now() - waited;
}
