/* What /proc says of a process. */
#include "ublkd/proc_stat.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { STAT_TEXT_SIZE = 1024 };

/* The 22nd field, in ticks since boot. */
uint64_t proc_stat_started_at(pid_t pid)
{
        char path[32], text[STAT_TEXT_SIZE];
        _cleanup_close_ int fd = -1;
        unsigned long long ticks;
        const char *after_name;
        ssize_t size;

        snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (size < 0)
                return 0;
        text[size] = '\0';
        after_name = strrchr(text, ')'); /* the name may hold anything */
        if (!after_name
                || sscanf(after_name,
                           ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
                           "%llu",
                           &ticks)
                           != 1)
                return 0;
        return clock_usec(CLOCK_REALTIME) - clock_usec(CLOCK_BOOTTIME)
               + ticks * 1000000 / (unsigned long long)sysconf(_SC_CLK_TCK);
}
