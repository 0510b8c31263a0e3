/* SPDX-License-Identifier: MIT */
/* The link to the supervisor: one connection at a time, and a socket on which later supervisors call. */
#pragma once

#include "ublkd/proto/worker_msg.h"

struct chan {
        int connection; /* or -1 */
        int listener;
};

/* Takes over the descriptor that the worker is started with. 0; -errno, -ENOTSOCK when it is not what it
 * should be. */
int chan_open(struct chan *chan);
/* Listens on `listener`, which it takes over: later supervisors find this process from now on. The same
 * results. */
int chan_listen(struct chan *chan, int listener);
void chan_close(struct chan *chan);

/* A caller on the listener becomes the connection, in place of the one before. 1; 0 if no caller waits, or
 * none that may call; -errno. */
int chan_accept(struct chan *chan);
/* Ends the connection. */
void chan_hang_up(struct chan *chan);
/* fd: goes with the message and stays the caller's; -1: none. 0, or -errno after ending the connection: the
 * peer is gone, or has not read for a second. Without a connection 0. */
int chan_send(struct chan *chan, const struct worker_msg *msg, int fd);
