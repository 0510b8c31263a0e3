/* SPDX-License-Identifier: MIT */
/* Commands of the shell. */
#include "tests/unit/ublkd/partitions/shell.h"
#include "tests/unit/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void shell_run(const char *format, ...)
{
        char command[1024];
        va_list arguments;

        va_start(arguments, format);
        (void)vsnprintf(command, sizeof(command), format, arguments);
        va_end(arguments);
        CHECK_INT(system(command), 0);
}
