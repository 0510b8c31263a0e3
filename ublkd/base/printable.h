/* SPDX-License-Identifier: MIT */
/* Text that came from elsewhere (names of processes, messages of workers and servers), for a terminal or a
 * log: what is shown of it is all that happens. */
#pragma once

/* Replace control characters, line breaks among them, and what is not UTF-8 with '?', in place. */
void make_printable(char *text);
