/* SPDX-License-Identifier: MIT */
/* Files for a test, in folders that vanish with it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct scratch {
        char path[256]; /* of a new folder */
};

/* Makes a folder in `parent`. 0 or -errno. */
int scratch_make(struct scratch *scratch, const char *parent);
/* Removes the folder with its files. */
void scratch_remove(struct scratch *scratch);
/* Writes "FOLDER/name" to `ret` (of size bytes) and makes a file there with `size_of_file` bytes of a
 * pattern. 0 or -errno. */
int scratch_file(
        const struct scratch *scratch, const char *name, uint64_t size_of_file, char *ret, size_t size);
/* The byte that scratch_file() puts at `offset`. */
unsigned char scratch_pattern(uint64_t offset);
