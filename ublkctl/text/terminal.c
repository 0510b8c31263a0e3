/* SPDX-License-Identifier: MIT */
/* Print to a terminal: colours, the line of progress, and text that cannot harm it. */
#include "ublkctl/text/terminal.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/printable.h"
#include "ublkd/base/utf8.h"

#include <assert.h>
#include <string.h>
#include <sys/ioctl.h>

static const char *const paints[] = {
        [PAINT_NONE] = "",
        [PAINT_GOOD] = "\033[32m",
        [PAINT_BUSY] = "\033[33m",
        [PAINT_BAD] = "\033[31m",
        [PAINT_DIM] = "\033[2m",
        [PAINT_BOLD] = "\033[1m",
};
static_assert(ARRAY_SIZE(paints) == _PAINT_MAX, "every paint has a sequence");

/* Whether the terminal shows a line of progress. Static, because there is one terminal. */
static bool progress_is_shown;

const char *paint_begin(enum paint paint)
{
        return paints[paint];
}

const char *paint_end(void)
{
        return "\033[0m";
}

enum paint phase_paint(const char *phase)
{
        static const struct {
                const char *phase;
                enum paint paint;
        } table[] = {
                {"Live",     PAINT_GOOD},
                {"Disabled", PAINT_DIM },
                {"Failed",   PAINT_BAD },
                {"Backoff",  PAINT_BAD },
                {"Quiesced", PAINT_BAD },
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (strcmp(table[i].phase, phase) == 0)
                        return table[i].paint;
        return PAINT_BUSY;
}

void print_safely(FILE *file, const char *text)
{
        _cleanup_free_ char *copy = strdup(text);

        if (copy)
                make_printable(copy);
        fputs(copy ? copy : "?", file);
}

void progress_show(const char *text)
{
        _cleanup_free_ char *copy = strdup(text);
        unsigned columns, rows;
        size_t shown = 0, end = 0;

        if (!copy)
                return;
        make_printable(copy);
        terminal_size(STDERR_FILENO, &columns, &rows);
        while (copy[end] && shown + 1 < columns) {
                end++;
                while (utf8_is_continuation(copy[end]))
                        end++;
                shown++;
        }
        copy[end] = '\0';
        fprintf(stderr, "\r%s\033[K", copy);
        fflush(stderr);
        progress_is_shown = true;
}

void progress_end(void)
{
        if (!progress_is_shown)
                return;
        fputs("\r\033[K", stderr);
        fflush(stderr);
        progress_is_shown = false;
}

void terminal_size(int fd, unsigned *ret_columns, unsigned *ret_rows)
{
        struct winsize size = {};
        bool known = ioctl(fd, TIOCGWINSZ, &size) == 0;

        *ret_columns = known && size.ws_col > 0 ? size.ws_col : 80;
        *ret_rows = known && size.ws_row > 0 ? size.ws_row : 24;
}
