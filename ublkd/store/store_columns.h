/* SPDX-License-Identifier: MIT */
/* Columns of the database that an older ublkd does not miss. They do not change the version of the database, so that the
 * older one still reads and writes it: its statements name their columns. For the store only. */
#pragma once

#include <sqlite3.h>

/* Add the columns that the database of this version lacks. Return SQLITE_OK or the error; a column is added whole or not
 * at all. */
int store_columns_add(sqlite3 *db);
