/* SPDX-License-Identifier: MIT */
/* The number of a disk, from its name. */
#include "ublkd/disks/disk_name.h"

#include <stdlib.h>
#include <string.h>

static size_t digits(const char *text)
{
        return strspn(text, "0123456789");
}

int disk_name_number(const char *name)
{
        static const char prefix[] = "ublkb";
        enum { DIGITS_MAX = 9 }; /* they fit into an int */
        const char *number = name + strlen(prefix), *rest;
        size_t length;

        if (strncmp(name, prefix, strlen(prefix)) != 0)
                return -1;
        length = digits(number);
        if (length == 0 || length > DIGITS_MAX || (length > 1 && *number == '0'))
                return -1;
        rest = number + length;
        if (*rest == 'p' && digits(rest + 1) > 0)
                rest += 1 + digits(rest + 1);
        return *rest == '\0' ? atoi(number) : -1;
}

int disk_name_number_in_path(const char *path)
{
        static const char deleted[] = " (deleted)";
        const char *slash = strrchr(path, '/');
        char name[64];
        size_t length;

        if (path[0] != '/' || strlen(slash + 1) >= sizeof(name))
                return -1;
        strcpy(name, slash + 1);
        length = strlen(name);
        if (length >= sizeof(deleted) && strcmp(name + length - (sizeof(deleted) - 1), deleted) == 0)
                name[length - (sizeof(deleted) - 1)] = '\0';
        return disk_name_number(name);
}
