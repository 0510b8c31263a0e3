/* SPDX-License-Identifier: MIT */
/* The text of a file in the form of systemd: sections, KEY=VALUE, comments with # and ;. Strict: a line that is anything
 * else is a fault. Pure. */
#pragma once

#include <stddef.h>

enum { CONFIG_LINE_MAX = 8192 }; /* bytes of a line, without blanks around it */

struct config_line {
        unsigned number;     /* from 1 on */
        const char *section; /* that it stands in, or begins; NULL: none */
        const char *key; /* NULL: the line begins a section; with a fault: the first word, which may be "" */
        const char *value; /* "" if it is empty; NULL: no value */
        const char *fault; /* what is wrong with the line, and what to do; NULL: nothing */
};

/* Call `take` for each line that is neither empty nor a comment. The text has `size` bytes and a NUL behind them; it is
 * changed. What `take` sees is valid during the call. */
void config_text_read(char *text, size_t size, void (*take)(void *userdata, const struct config_line *line),
        void *userdata);
