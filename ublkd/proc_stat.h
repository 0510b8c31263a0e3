/* What /proc says of a process. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* When it was started: CLOCK_REALTIME, microseconds; 0: unknown. */
uint64_t proc_stat_started_at(pid_t pid);
