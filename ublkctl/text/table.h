/* SPDX-License-Identifier: MIT */
/* Print aligned columns of text. */
#pragma once

#include "ublkctl/text/terminal.h"

#include "ublkd/base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

struct table;

/* Create a table with these headings (NULL-terminated; they must outlive it). A heading that begins with '>'
 * marks a column of numbers, aligned to the right. NULL on ENOMEM. table_free() takes NULL and returns
 * NULL. */
struct table *table_new(const char *const *headings);
struct table *table_free(struct table *table);

/* Make a column at least `width` code points wide, so that it stays where it is when its cells grow. */
void table_reserve(struct table *table, size_t column, size_t width);

/* Add the next cell, row by row. The text is copied and made printable; NULL prints "-". On ENOMEM
 * table_print() fails. */
void table_add(struct table *table, const char *text);
void table_add_painted(struct table *table, enum paint paint, const char *text);
void table_add_format(struct table *table, const char *format, ...) _printf_(2, 3);

/* Print the table. Columns are two spaces apart and as wide as their widest cell, in code points; no space
 * follows the last cell. At most `rows` rows (0: all); lines are cut to `columns` code points (0: never).
 * Return 0; -ENOMEM if cells are missing: nothing is printed. */
int table_print(const struct table *table, FILE *file, bool colours, size_t rows, size_t columns);

/* Return the text of the cell `index`, counted row by row; "": there is none. */
const char *table_cell(const struct table *table, size_t index);
/* Return how many code points the longest line has. */
size_t table_width(const struct table *table);

DEFINE_CLEANUP(struct table, table_free);
#define _cleanup_table_ _cleanup_(table_free_pointer)
