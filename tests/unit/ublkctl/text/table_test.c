/* SPDX-License-Identifier: MIT */
/* Tests of aligned columns. */
#include "tests/unit/check.h"
#include "ublkctl/text/table.h"

static char *print(const struct table *table, bool colours, size_t rows, size_t columns)
{
        char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);

        CHECK_INT(table_print(table, file, colours, rows, columns), 0);
        fclose(file);
        return text;
}

static void check_print(
        const struct table *table, bool colours, size_t rows, size_t columns, const char *wanted)
{
        char *text = print(table, colours, rows, columns);

        CHECK_STR(text, wanted);
        free(text);
}

int main(void)
{
        static const char *const headings[] = {"NAME", ">SIZE", "LAST", NULL};
        struct table *table = table_new(headings);

        check_print(table, false, 0, 0, "NAME  SIZE  LAST\n");
        table_add(table, "b\xc3\xa4r\x1b[31m"); /* the escape is made harmless */
        table_add_format(table, "%d", 5);
        table_add(table, NULL);
        table_add(table, "x");
        table_add(table, "123456");
        table_add_painted(table, PAINT_GOOD, "Live");
        check_print(table, false, 0, 0,
                "NAME        SIZE  LAST\n"
                "b\xc3\xa4r?[31m       5  -\n"
                "x         123456  Live\n");
        check_print(table, false, 1, 0,
                "NAME      SIZE  LAST\n"
                "b\xc3\xa4r?[31m     5  -\n");
        check_print(table, false, 0, 3, "NAM\nb\xc3\xa4r\nx  \n");
        check_print(table, true, 0, 0,
                "\033[1mNAME\033[0m        \033[1mSIZE\033[0m  \033[1mLAST\033[0m\n"
                "b\xc3\xa4r?[31m       5  -\n"
                "x         123456  \033[32mLive\033[0m\n");
        table_free(table);
        table_free(NULL);
        return check_report();
}
