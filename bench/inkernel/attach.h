/* SPDX-License-Identifier: MIT */
/* The loop as a program of the kernel: loads it for a queue, and attaches it to the ring. */
#pragma once

#include "bench/inkernel/queue.h"

struct attached;

/* Load the program, with the settings of a queue as its constants. */
int attached_load(const struct queue *queue, struct attached **ret);
/* Attach it to the ring with the number RING_FD of this process, to go on from a state. 0 or -errno. */
int attached_install(struct attached *attached, const struct state *state);
/* Return what the program has counted. */
volatile struct state *attached_state(struct attached *attached);
/* Take the program off the ring, from where the ring is an ordinary one again. */
void attached_remove(struct attached *attached);
