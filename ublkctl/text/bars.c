/* SPDX-License-Identifier: MIT */
/* Bars and curves of characters. */
#include "ublkctl/text/bars.h"

#include "ublkd/base/cleanup.h"

#include <langinfo.h>
#include <string.h>

/* From the left, in eighths of a column. */
static const char *const bar_parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
/* From the ground: the first is nothing at all, and no blank, so that a curve stays one word. */
static const char *const steps[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const plain_steps[] = {"_", ".", ":", "-", "=", "+", "*", "#"};

bool bars_have_blocks(void)
{
        return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

void bar_draw(double share, size_t width, bool blocks, char ret[static BAR_SIZE])
{
        size_t parts = blocks ? ARRAY_SIZE(bar_parts) : 1, eighths;

        width = width < BAR_MAX ? width : BAR_MAX;
        share = share < 0 ? 0 : share > 1 ? 1 : share;
        eighths = (size_t)(share * (double)(width * parts) + 0.5);
        if (share > 0 && eighths == 0)
                eighths = 1;
        *ret = '\0';
        for (size_t i = 0; i < eighths / parts; i++)
                strcat(ret, blocks ? "█" : "#");
        if (blocks)
                strcat(ret, bar_parts[eighths % parts]);
}

void curve_draw(const double *values, size_t count, bool blocks, char ret[static CURVE_SIZE])
{
        const char *const *marks = blocks ? steps : plain_steps;
        double most = 0;

        if (count > CURVE_MAX) {
                values += count - CURVE_MAX;
                count = CURVE_MAX;
        }
        for (size_t i = 0; i < count; i++)
                most = values[i] > most ? values[i] : most;
        *ret = '\0';
        for (size_t i = 0; i < count; i++) {
                size_t top = ARRAY_SIZE(steps) - 1, step = 0;

                if (values[i] > 0) /* a little is more than nothing */
                        step = 1 + (size_t)(values[i] / most * (double)(top - 1) + 0.5);
                strcat(ret, marks[step > top ? top : step]);
        }
}
