/* SPDX-License-Identifier: MIT */
/* Counts the instructions that a piece of a program executes, by stepping through it: the same from run to run,
 * whatever else the machine does. A few tens of thousands a second. The kernel's are not counted. */
#pragma once

#include <stdint.h>

/* Run `run` in a child process, and call `counted` here for each piece that it has marked, with its number from
 * 0 on. Return the child's exit status, or -errno. */
int step_count(void (*run)(void *userdata),
        void (*counted)(void *userdata, unsigned piece, uint64_t instructions), void *userdata);
/* The same, and call `stepped` after each instruction of each piece, while the child stands still behind it. NULL: no call. */
int step_watch(void (*run)(void *userdata), void (*stepped)(void *userdata),
        void (*counted)(void *userdata, unsigned piece, uint64_t instructions), void *userdata);
/* In the child: a piece begins. */
void step_count_begin(void);
/* In the child: it ends. */
void step_count_end(void);
