/* SPDX-License-Identifier: MIT */
/* Why a database cannot be opened. For the store only. */
#pragma once

#include "ublkd/base/problem.h"

/* Add the problem of the database at `path`. error: -errno of opening it. Return `error`. */
int database_problem_add(const char *path, int error, struct problem_list *problems);
