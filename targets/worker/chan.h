/* SPDX-License-Identifier: MIT */
/* The link to the supervisor: one connection at a time, and a socket on which later supervisors call. */
#pragma once

#include "ublkd/proto/worker_msg.h"

struct chan {
        int connection; /* or -1 */
        int listener;
        uid_t owner; /* of the process when it was started, and of callers */
};

/* Take over the descriptor that the worker is started with. Return 0; -ENOTSOCK: it is not a socket of that
 * kind; other -errno. */
int chan_open(struct chan *chan);
/* Listen on `listener`, which is taken over: later supervisors find this process from now on. Return as
 * chan_open(). */
int chan_listen(struct chan *chan, int listener);
void chan_close(struct chan *chan);

/* Accept a caller on the listener as the connection, in place of the one before. Return 1; 0: no caller
 * waits, or it may not call; -errno. */
int chan_accept(struct chan *chan);
/* Return the descriptors of both, or -1. */
void chan_links(const struct chan *chan, int ret[2]);
/* End the connection. */
void chan_hang_up(struct chan *chan);
/* Send a message, if the peer has room for it. Return 0, also without a connection; -EAGAIN: it has none now; other
 * -errno after ending the connection. */
int chan_offer(struct chan *chan, const struct worker_msg *msg);
/* Send a message. fds: go with it and stay the caller's, those before the first -1. May wait a second for a peer that does
 * not read. Return 0, also without a connection; or -errno after ending the connection, because the peer is
 * gone or has not read. */
int chan_send(struct chan *chan, const struct worker_msg *msg, const int fds[static _CONFIG_FD_MAX]);
