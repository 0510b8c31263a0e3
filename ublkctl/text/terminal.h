/* SPDX-License-Identifier: MIT */
/* Print to a terminal: colours, the line of progress, and text that cannot harm it. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

enum paint { PAINT_NONE, PAINT_GOOD, PAINT_BUSY, PAINT_BAD, PAINT_DIM, PAINT_BOLD, _PAINT_MAX };

/* Return the escape sequence that begins the colour; "" for PAINT_NONE. */
const char *paint_begin(enum paint paint);
/* Return the escape sequence that ends any colour. */
const char *paint_end(void);

/* Return the colour of a phase. */
enum paint phase_paint(const char *phase);

/* Print text from another program, with '?' for control characters and invalid UTF-8. */
void print_safely(FILE *file, const char *text);

/* Replace the line of progress on stderr, until progress_end(). Call it only if stderr is a terminal. `text`
 * is cut to the width of the terminal. */
void progress_show(const char *text);
/* Remove the line of progress, if there is one. */
void progress_end(void);

/* Get the size of the terminal at `fd`; 80 by 24 if it is unknown. */
void terminal_size(int fd, unsigned *ret_columns, unsigned *ret_rows);
