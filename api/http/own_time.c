/* SPDX-License-Identifier: MIT */
/* A clock of the loop that stands still while the loop waits for a CPU. */
#include "api/http/own_time.h"

#include "ublkd/base/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* One that took minutes, as a disk did not answer, does not hold up the others for as long again. */
enum { PAUSE_OWN = 4, PAUSE_MAX_USEC = 10 * 1000 * 1000 };

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

struct own_time own_time_now(int clock)
{
        uint64_t waited = waited_nsec(clock) / 1000; /* first: what comes between the two reads is own time */
        uint64_t wall = monotonic_now();

        return (struct own_time){.own = wall - waited, .wall = wall};
}

static uint64_t since(uint64_t now, uint64_t began)
{
        return now > began ? now - began : 0;
}

uint64_t own_time_pause(const struct own_time *began, const struct own_time *ended)
{
        uint64_t own = since(ended->own, began->own), wall = since(ended->wall, began->wall);
        uint64_t pause = PAUSE_OWN * own + since(wall, own);

        return pause < PAUSE_MAX_USEC ? pause : PAUSE_MAX_USEC;
}
