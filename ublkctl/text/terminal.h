/* SPDX-License-Identifier: MIT */
/* What goes to a terminal: colours, the line of progress, and nothing that could harm it. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

enum paint { PAINT_NONE, PAINT_GOOD, PAINT_BUSY, PAINT_BAD, PAINT_DIM, PAINT_BOLD, _PAINT_MAX };

/* The escape sequence that begins the colour; "" for PAINT_NONE. */
const char *paint_begin(enum paint paint);
/* The one that ends any. */
const char *paint_end(void);

/* The colour of a phase. */
enum paint phase_paint(const char *phase);

/* Prints text that came from elsewhere, with '?' for control characters and for what is no UTF-8. */
void print_safely(FILE *file, const char *text);

/* Shows a line on stderr in place of the one before; it is gone after progress_end(). To be used only when
 * stderr is a terminal. `text` is cut to the width of the terminal. */
void progress_show(const char *text);
/* Takes the line away, if there is one. */
void progress_end(void);

/* Of the terminal at fd; 80 by 24 when it does not tell. */
void terminal_size(int fd, unsigned *ret_columns, unsigned *ret_rows);
