/* SPDX-License-Identifier: MIT */
/* Names of users and groups of this machine. */
#include "ublkctl/spec/owner_names.h"

#include "ublkd/base/cleanup.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

enum { ENTRY_SIZE = 64 * 1024 }; /* a group with thousands of members */

static int find_user(const char *name, char *buffer, uint32_t *ret)
{
        struct passwd entry, *found = NULL;
        int error = getpwnam_r(name, &entry, buffer, ENTRY_SIZE, &found);

        if (found)
                *ret = entry.pw_uid;
        return found ? 0 : error ? -error : -ENOENT;
}

static int find_group(const char *name, char *buffer, uint32_t *ret)
{
        struct group entry, *found = NULL;
        int error = getgrnam_r(name, &entry, buffer, ENTRY_SIZE, &found);

        if (found)
                *ret = entry.gr_gid;
        return found ? 0 : error ? -error : -ENOENT;
}

static const struct {
        const char *field;
        int (*find)(const char *name, char *buffer, uint32_t *ret);
} fields[] = {
        {"owner.uid", find_user },
        {"owner.gid", find_group},
};

bool owner_names_has(const char *field)
{
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
                if (strcmp(fields[i].field, field) == 0)
                        return true;
        return false;
}

int owner_name_find(const char *field, const char *name, uint32_t *ret)
{
        _cleanup_free_ char *buffer = malloc(ENTRY_SIZE);

        for (size_t i = 0; buffer && i < ARRAY_SIZE(fields); i++)
                if (strcmp(fields[i].field, field) == 0)
                        return fields[i].find(name, buffer, ret);
        return -ENOMEM;
}
