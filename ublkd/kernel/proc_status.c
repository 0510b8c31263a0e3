/* SPDX-License-Identifier: MIT */
/* The text of /proc/PID/status. */
#include "ublkd/kernel/proc_status.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *proc_status_field(const char *status, const char *field)
{
        size_t length = strlen(field);

        for (const char *line = status, *end; (end = strchr(line, '\n')); line = end + 1)
                if (strncmp(line, field, length) == 0 && line[length] == ':')
                        return line + length + 1;
        return NULL;
}

int64_t proc_status_number(const char *status, const char *field, unsigned index)
{
        const char *at = proc_status_field(status, field);
        int64_t value = -1;

        for (unsigned i = 0; at && i <= index; i++) {
                char *after;

                at += strspn(at, " \t");
                value = isdigit((unsigned char)*at) ? strtoll(at, &after, 10) : -1;
                at = value >= 0 ? after : NULL;
        }
        return value;
}
