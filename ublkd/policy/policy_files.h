/* SPDX-License-Identifier: MIT */
/* Read the files NAME.json of the directory of a policy, in the order of their names.
 *
 * The directory and each file belong to root or to the user of ublkd, and no other user may write to them: who writes a
 * policy decides who may have what. */
#pragma once

#include "ublkd/base/problem.h"

#include <stddef.h>

enum {
        POLICY_FILES_MAX = 256,
        POLICY_FILE_SIZE_MAX = 1024 * 1024,
};

struct policy_file {
        char *path;
        char *text; /* ends with a NUL */
        size_t size;
};

/* Zero-initialise. */
struct policy_files {
        struct policy_file *items;
        size_t count;
};

/* Read the files of `directory`. A directory that does not exist has none. It may block. Return 0; -EINVAL with a problem
 * for each file that cannot be read or trusted; -ENOMEM. */
int policy_files_read(const char *directory, struct policy_files *ret, struct problem_list *problems);
void policy_files_clear(struct policy_files *files);
#define _cleanup_policy_files_ _cleanup_(policy_files_clear)
