/* SPDX-License-Identifier: MIT */
/* How much two names differ, for names that a client or an administrator has mistyped. Pure. */
#pragma once

#include <stddef.h>

/* Return how many letters must be put in, left out or exchanged to make one name of the other, in any case; SIZE_MAX:
 * one is longer than 32 bytes. */
size_t name_distance(const char *one, const char *other);
