/* SPDX-License-Identifier: MIT */
/* Aligned columns of text. */
#pragma once

#include "ublkctl/text/terminal.h"

#include "ublkd/base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

struct table;

/* A table with these headings (NULL-terminated; used until table_free()). A heading that begins with '>' is
 * of a column of numbers: aligned to the right. NULL: out of memory. */
struct table *table_new(const char *const *headings);
struct table *table_free(struct table *table);

/* The next cell, row by row; text is copied and made printable, NULL is "-". When memory runs out the table
 * says so when it is printed. */
void table_add(struct table *table, const char *text);
void table_add_painted(struct table *table, enum paint paint, const char *text);
void table_add_format(struct table *table, const char *format, ...) _printf_(2, 3);

/* Columns are two spaces apart and as wide as their widest cell, in code points; nothing follows the last
 * cell of a line. At most `rows` rows (0: all), lines cut to `columns` code points (0: never cut).
 * 0, or -ENOMEM when cells are missing (nothing is printed). */
int table_print(const struct table *table, FILE *file, bool colours, size_t rows, size_t columns);

DEFINE_CLEANUP(struct table, table_free);
#define _cleanup_table_ _cleanup_(table_free_pointer)
