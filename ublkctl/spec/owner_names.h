/* SPDX-License-Identifier: MIT */
/* Names of users and groups of this machine, for the fields owner.uid and owner.gid. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Return whether `field` ("owner.uid", "owner.gid") takes such a name. */
bool owner_names_has(const char *field);

/* Find the number of the user or group of this name. Return 0; -ENOENT: there is none; or -errno. */
int owner_name_find(const char *field, const char *name, uint32_t *ret);
