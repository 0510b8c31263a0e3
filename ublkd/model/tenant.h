/* SPDX-License-Identifier: MIT */
/* The tenant of a device: who owns it, if not the administrators of the host. Plain data.
 *
 * A tenant is known by a key, such as "uid:1000": a user of the host, by its number in the user namespace of the host.
 * The key of the administrators is empty. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

enum { TENANT_SIZE = 32 };

/* Write the key of a user. */
static inline void tenant_of_user(uid_t uid, char ret[static TENANT_SIZE])
{
        snprintf(ret, TENANT_SIZE, "uid:%u", (unsigned)uid);
}

/* Return whether the key names a tenant; else it is that of the administrators. */
static inline bool tenant_is_set(const char *tenant)
{
        return *tenant != '\0';
}

/* Return whether both keys are of the same tenant. The key of the administrators is none. */
static inline bool tenant_is(const char *tenant, const char *other)
{
        return tenant_is_set(tenant) && strcmp(tenant, other) == 0;
}

/* Read the user of a key. Return false if the key names none. */
static inline bool tenant_user(const char *tenant, uid_t *ret)
{
        unsigned uid;
        int length = 0;

        if (sscanf(tenant, "uid:%10u%n", &uid, &length) != 1 || tenant[length] != '\0')
                return false;
        *ret = uid;
        return true;
}
