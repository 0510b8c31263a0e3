/* SPDX-License-Identifier: MIT */
/* Which control groups a rule is for. */
#include "ublkd/policy/policy_cgroup.h"
#include "ublkd/values/path_text.h"

#include <stddef.h>
#include <string.h>

bool policy_cgroup_is_below(const char *path, const char *of)
{
        if (strcmp(of, "/") == 0)
                return strcmp(path, of) == 0;
        return path_rest(path, of) != NULL;
}

static bool ends_with(const char *name, size_t length, const char *end)
{
        return length > strlen(end) && memcmp(name + length - strlen(end), end, strlen(end)) == 0;
}

/* systemd writes "_" before a name that could be one of the kernel's. */
static bool is_name(const char *name, size_t length, const char *unit)
{
        if (length > 0 && *name == '_') {
                name++;
                length--;
        }
        return length == strlen(unit) && memcmp(name, unit, length) == 0;
}

bool policy_cgroup_is_in_unit(const char *path, const char *unit)
{
        bool in_slice = true;

        while (in_slice && *path != '\0') {
                size_t length;

                path += strspn(path, "/");
                length = strcspn(path, "/");
                if (is_name(path, length, unit))
                        return true;
                in_slice = ends_with(path, length, ".slice");
                path += length;
        }
        return false;
}
