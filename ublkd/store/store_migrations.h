/* SPDX-License-Identifier: MIT */
/* The tables of the database, version by version. For the store only. */
#pragma once

#include <stddef.h>

/* store_migrations[N] converts a database from user_version N to N + 1. Do not change a released migration: add
 * another one. An older ublkd refuses what a newer one has converted; what it would not miss is in store_columns.c. */
extern const char *const store_migrations[];
extern const size_t store_migration_count;
