/* SPDX-License-Identifier: MIT */
/* Text that came from elsewhere (names of processes, messages of workers and servers), for a terminal or a
 * log: what is shown of it is all that happens. */
#pragma once

#include <stddef.h>

/* Return the length of the character that `text` begins with, if a terminal shows it and does nothing else; 0: it is a control
 * character, breaks a line, turns the direction of the text around it, or is not UTF-8. left: bytes up to the NUL, at least 1. */
size_t printable_length(const char *text, size_t left);

/* Replace control characters, line breaks among them, and what is not UTF-8 with '?', in place. */
void make_printable(char *text);
