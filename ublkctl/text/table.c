/* SPDX-License-Identifier: MIT */
/* Print aligned columns of text. ublkctl/README.md says why libsmartcols does not do it. */
#include "ublkctl/text/table.h"

#include "ublkctl/text/text.h"
#include "ublkd/base/printable.h"
#include "ublkd/base/utf8.h"

#include <stdarg.h>
#include <string.h>

enum { COLUMNS_MAX = 24, GAP = 2 };

struct cell {
        char *text;
        enum paint paint;
};

struct table {
        const char *const *headings;
        size_t columns;
        size_t reserved[COLUMNS_MAX];
        struct cell *cells;
        size_t count, capacity;
        bool incomplete;
};

struct table *table_new(const char *const *headings)
{
        struct table *table = calloc(1, sizeof(*table));

        if (!table)
                return NULL;
        table->headings = headings;
        while (headings[table->columns] && table->columns < COLUMNS_MAX)
                table->columns++;
        return table;
}

struct table *table_free(struct table *table)
{
        if (!table)
                return NULL;
        for (size_t i = 0; i < table->count; i++)
                free(table->cells[i].text);
        free(table->cells);
        free(table);
        return NULL;
}

void table_reserve(struct table *table, size_t column, size_t width)
{
        if (column < table->columns)
                table->reserved[column] = width;
}

static bool make_room(struct table *table)
{
        size_t capacity = table->capacity ? 2 * table->capacity : 64;
        struct cell *cells;

        if (table->count < table->capacity)
                return true;
        cells = reallocarray(table->cells, capacity, sizeof(*cells));
        if (!cells)
                return false;
        table->cells = cells;
        table->capacity = capacity;
        return true;
}

void table_add_painted(struct table *table, enum paint paint, const char *text)
{
        char *copy = strdup(text ? text : "-");

        if (!copy || !make_room(table)) {
                free(copy);
                table->incomplete = true;
                return;
        }
        make_printable(copy);
        table->cells[table->count++] = (struct cell){.text = copy, .paint = paint};
}

void table_add(struct table *table, const char *text)
{
        table_add_painted(table, PAINT_NONE, text);
}

void table_add_format(struct table *table, const char *format, ...)
{
        _cleanup_free_ char *text = NULL;
        va_list arguments;

        va_start(arguments, format);
        text = text_format(format, arguments);
        va_end(arguments);
        if (text)
                table_add(table, text);
        else
                table->incomplete = true;
}

/* Print at most `count` code points of text. Return how many. */
static size_t print_part(FILE *file, const char *text, size_t count)
{
        size_t printed = 0;

        for (; *text; text++) {
                if (!utf8_is_continuation(*text) && printed++ == count)
                        return count;
                fputc(*text, file);
        }
        return printed;
}

struct line {
        FILE *file;
        bool colours;
        size_t left; /* code points that still fit */
};

static void print_blanks(struct line *line, size_t count)
{
        for (; count > 0 && line->left > 0; count--, line->left--)
                fputc(' ', line->file);
}

static void print_cell(
        struct line *line, const char *text, enum paint paint, size_t width, bool right, bool last)
{
        size_t length = utf8_count(text), padding = width > length ? width - length : 0;
        bool painted = line->colours && paint != PAINT_NONE;

        if (right)
                print_blanks(line, padding);
        if (painted)
                fputs(paint_begin(paint), line->file);
        line->left -= print_part(line->file, text, line->left);
        if (painted)
                fputs(paint_end(), line->file);
        if (!right && !last)
                print_blanks(line, padding);
        if (!last)
                print_blanks(line, GAP);
}

static const char *heading_text(const struct table *table, size_t column)
{
        const char *heading = table->headings[column];

        return heading + (*heading == '>');
}

static void measure(const struct table *table, size_t rows, size_t widths[static COLUMNS_MAX])
{
        for (size_t column = 0; column < table->columns; column++) {
                widths[column] = utf8_count(heading_text(table, column));
                if (table->reserved[column] > widths[column])
                        widths[column] = table->reserved[column];
        }
        for (size_t i = 0; i < rows * table->columns; i++) {
                size_t width = utf8_count(table->cells[i].text);

                if (width > widths[i % table->columns])
                        widths[i % table->columns] = width;
        }
}

const char *table_cell(const struct table *table, size_t index)
{
        return index < table->count ? table->cells[index].text : "";
}

size_t table_width(const struct table *table)
{
        size_t widths[COLUMNS_MAX], width = 0;

        measure(table, table->count / table->columns, widths);
        for (size_t column = 0; column < table->columns; column++)
                width += widths[column] + (column > 0 ? GAP : 0);
        return width;
}

int table_print(const struct table *table, FILE *file, bool colours, size_t rows, size_t columns)
{
        size_t widths[COLUMNS_MAX], all = table->count / table->columns;

        if (table->incomplete)
                return -ENOMEM;
        rows = rows && rows < all ? rows : all;
        measure(table, rows, widths);
        for (size_t row = 0; row <= rows; row++) {
                struct line line = {.file = file, .colours = colours, .left = columns ? columns : SIZE_MAX};

                for (size_t column = 0; column < table->columns; column++) {
                        const struct cell *cell =
                                row > 0 ? &table->cells[(row - 1) * table->columns + column] : NULL;

                        print_cell(&line, cell ? cell->text : heading_text(table, column),
                                cell ? cell->paint : PAINT_BOLD, widths[column],
                                table->headings[column][0] == '>', column + 1 == table->columns);
                }
                fputc('\n', file);
        }
        return 0;
}
