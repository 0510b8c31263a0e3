/* SPDX-License-Identifier: MIT */
/* The newest requests of a disk that failed, one for each operation, as the status shows them. No I/O. */
#pragma once

#include "ublkd/proto/region_errors.h"

#include <cjson/cJSON.h>

struct io_errors {
        struct error_report of[_STATS_OP_MAX];
};

/* Return whether the status shows the same of both. */
bool io_errors_equal(const struct io_errors *one, const struct io_errors *other);
/* Return the symbol of an errno ("ENOSPC"), or "other" for an unknown one. Static. */
const char *io_error_name(int error);
/* Return whether requests of `op` have a place on the disk. */
bool io_error_has_place(enum stats_op op);
/* Add the array `name` to `object`, without operations that never failed. Return false on ENOMEM. */
bool io_errors_add(const struct io_errors *errors, cJSON *object, const char *name);
