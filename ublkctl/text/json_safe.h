/* SPDX-License-Identifier: MIT */
/* Print JSON to a terminal. cJSON escapes control characters of ASCII, but not DEL, C1 (one of which is the CSI of xterm), nor
 * what breaks a line or turns the direction of a text. */
#pragma once

#include <stdio.h>

/* Print the JSON text and a line break. What a terminal would not show as it is becomes \uXXXX: a parser reads the same. What
 * is not UTF-8 becomes U+FFFD. Each tab of cJSON's layout becomes four spaces, or one behind a colon. */
void json_print_safely(FILE *file, const char *json);
