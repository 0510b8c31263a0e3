/* SPDX-License-Identifier: MIT */
/* load: the columns of top keep their places while the numbers change. */
#include "ublkctl/verbs/show/load.h"

#include "tests/unit/check.h"

#include <string.h>

static struct context context;

/* Return what is printed; the caller frees it. */
static char *print(const struct load *loads, size_t count, size_t lines, size_t width)
{
        FILE *before = stdout;
        char *text = NULL;
        size_t size;

        stdout = open_memstream(&text, &size);
        CHECK_INT(load_table_print(&context, loads, count, lines, width), STATUS_OK);
        fclose(stdout);
        stdout = before;
        return text;
}

static struct load idle(const char *name)
{
        return (struct load){
                .name = name,
                .rate = {.read_p50 = -1, .read_p99 = -1, .write_p50 = -1, .write_p99 = -1},
                .load_count = 1,
        };
}

/* As wide as numbers get. */
static struct load busy(const char *name)
{
        struct load load = {
                .name = name,
                .rate = {.errors = 99900,
                         .reads = 99900,
                         .read_bytes = 99.9 * (1 << 20),
                         .read_p50 = 99900,
                         .read_p99 = 99900,
                         .writes = 99900,
                         .write_bytes = 1023.0 * 1024,
                         .write_p50 = 99900,
                         .write_p99 = 99900,
                         .others = 99900,
                         .in_flight = 4096},
                .load_count = LOAD_HISTORY,
        };

        for (size_t i = 0; i < LOAD_HISTORY; i++)
                load.loads[i] = (double)i;
        return load;
}

/* Return the length of the longest line. */
static size_t width_of(const char *text)
{
        size_t width = 0;

        for (; *text; text += strcspn(text, "\n") + 1)
                if (strcspn(text, "\n") > width)
                        width = strcspn(text, "\n");
        return width;
}

/* The headings of both are one line, the same one. */
static void columns_keep_their_places(const char *name, size_t width)
{
        const struct load quiet = idle(name), loud = busy(name);
        char *before = print(&quiet, 1, 0, width), *after = print(&loud, 1, 0, width);

        CHECK_INT(strcspn(before, "\n"), strcspn(after, "\n"));
        CHECK(strncmp(before, after, strcspn(before, "\n")) == 0);
        CHECK(width == 0 || width_of(after) <= width);
        free(before);
        free(after);
}

static void the_curve_takes_what_room_there_is(void)
{
        const struct load loud = busy("data");
        char *narrow = print(&loud, 1, 0, 80), *wide = print(&loud, 1, 0, 200);

        CHECK(strstr(narrow, "  LOAD\n"));
        CHECK(strstr(narrow, "**#\n")); /* the newest intervals */
        CHECK_INT(width_of(narrow), 80);
        CHECK(strstr(wide, "_:"));
        free(narrow);
        free(wide);
}

/* The busiest are the first, and others may be so in the next table. */
static void names_below_the_last_line_count(void)
{
        const struct load loads[] = {idle("a"), idle("a-longer-name")};
        char *one = print(loads, 2, 1, 0), *all = print(loads, 2, 0, 0);

        CHECK(strncmp(one, all, strcspn(all, "\n")) == 0);
        free(one);
        free(all);
}

int main(void)
{
        static const char *const names[] = {"a", "data", "database", "a-name-of-more-than-sixteen"};

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                for (size_t width = 40; width <= 160; width += 10)
                        columns_keep_their_places(names[i], width);
        columns_keep_their_places("data", 0);
        the_curve_takes_what_room_there_is();
        names_below_the_last_line_count();
        return check_report();
}
