/* SPDX-License-Identifier: MIT */
/* A disk over two files, and another server that has them open. */
#pragma once

#include "tests/target/scratch.h"
#include "tests/target/target_host.h"

#include <stdbool.h>
#include <sys/types.h>

enum { TWO_FILES = 2 };

struct two_files {
        struct scratch scratch;
        char paths[TWO_FILES][512];
        int others[TWO_FILES]; /* of the other server */
        struct target_host host;
};

/* Make both files, `size` bytes each; the caller opens the host, if all is well. Call two_files_close() in any case. */
bool two_files_make(struct two_files *files, uint64_t size);
void two_files_close(struct two_files *files);
/* Return whether the other server gets the lock on a byte of a file, which it gives back. */
bool two_files_is_free(const struct two_files *files, unsigned file, off_t byte);
