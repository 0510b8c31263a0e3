/* SPDX-License-Identifier: MIT */
/* What a child has opened for its parent: a descriptor, or why there is none. Over a socket pair (SOCK_SEQPACKET). */
#pragma once

#include <stdbool.h>

/* Send `fd`, which stays the caller's; -errno: send that. Return whether it was sent. */
bool fd_result_send(int link, int fd);
/* Receive what the other end has sent. flags: of recvmsg(2), beside those for the descriptor; it waits unless they have MSG_DONTWAIT.
 * Return a descriptor, closed on exec and owned by the caller; the -errno that was sent; -EPIPE: nothing was. */
int fd_result_receive(int link, int flags);
