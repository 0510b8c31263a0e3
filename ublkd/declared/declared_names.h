/* SPDX-License-Identifier: MIT */
/* A queue of names of devices, in the order in which they were added. */
#pragma once

#include <stddef.h>

/* Zero-initialise. */
struct names {
        char **items;
        size_t head, count;
};

/* Add a copy of the name. Return 0 or -ENOMEM. */
int names_add(struct names *names, const char *name);
/* Return the first name, or NULL: there is none. Valid until it is dropped. */
const char *names_head(const struct names *names);
/* Drop the first name, which there is. */
void names_drop(struct names *names);
/* Drop all. */
void names_clear(struct names *names);
