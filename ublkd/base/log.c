/* One logging layer. The journal reads the "<N>" prefix as the level (sd-daemon(3)), a terminal gets none. */
#include "ublkd/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int log_max_level = LOG_INFO;

void log_set_level(int level)
{
        log_max_level = level;
}

void log_line(int level, const char *device, const char *format, ...)
{
        char line[2048], prefix[8] = "";
        va_list arguments;

        if (level > log_max_level)
                return;
        if (getenv("JOURNAL_STREAM"))
                snprintf(prefix, sizeof(prefix), "<%d>", level);
        va_start(arguments, format);
        (void)vsnprintf(line, sizeof(line), format, arguments);
        va_end(arguments);
        /* One write a line: the lines of several processes share the stream. */
        if (device)
                dprintf(STDERR_FILENO, "%s%s: %s\n", prefix, device, line);
        else
                dprintf(STDERR_FILENO, "%s%s\n", prefix, line);
}
