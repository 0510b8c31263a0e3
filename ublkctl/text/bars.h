/* SPDX-License-Identifier: MIT */
/* Bars and curves of characters. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { BAR_MAX = 200, BAR_SIZE = 3 * BAR_MAX + 4, CURVE_MAX = 64, CURVE_SIZE = 3 * CURVE_MAX + 1 };

/* Return whether the locale of the process has the block characters of Unicode (UTF-8); else '#' and the like are
 * used. */
bool bars_have_blocks(void);

/* Draw a bar of `width` columns (BAR_MAX at most) times `share` (0 to 1). A share above 0 is never empty. */
void bar_draw(double share, size_t width, bool blocks, char ret[static BAR_SIZE]);

/* Draw the last values (CURVE_MAX at most), one column each, from 0 to the largest of them. */
void curve_draw(const double *values, size_t count, bool blocks, char ret[static CURVE_SIZE]);
