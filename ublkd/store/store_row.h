/* SPDX-License-Identifier: MIT */
/* A device as a row of the database. For store_sqlite.c only, which owns the statements and the transactions. */
#pragma once

#include "ublkd/store/device_store.h"

#include <sqlite3.h>

/* Insert the row of a device, or replace the one with its name. */
extern const char store_row_save[];
/* Read the rows of all devices. */
extern const char store_row_load[];

/* Bind a device to store_row_save. All values are borrowed until the statement has run. boot: the id of this boot; "" if the
 * device is neither stopped nor temporary. stores: record_stores_print() of its stores. */
void store_row_bind(sqlite3_stmt *save, const struct device_record *record, const char *document,
        const char *boot, const char *stores);

/* Return the text of a column of the row that was read last; "" for NULL and on ENOMEM. It lives until the next row. */
const char *store_row_text(sqlite3_stmt *row, int column);

/* Call `each` with the device of a row of store_row_load and its spec. The record lives during the call. Return what `each`
 * returned, or -ENOMEM. */
int store_row_read(sqlite3_stmt *row,
        int (*each)(void *userdata, const struct device_record *record, const char *document),
        void *userdata);
