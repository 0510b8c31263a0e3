/* SPDX-License-Identifier: MIT */
/* HTTP on the socket of the plug-in, for root alone. A thread of each connection waits for ublkd. */
#pragma once

#include "volumes/plugin_calls.h"

struct plugin_server;

/* Listen at `path`, whose directory is made if it is missing; a socket that a death has left there is replaced. `plugin`
 * outlives the server. Return 0; -EADDRINUSE: another process listens there; other -errno. */
int plugin_server_open(const struct plugin *plugin, const char *path, struct plugin_server **ret);
/* End the calls that are under way (plugin_end_calls()), and close. NULL is fine. Return NULL. */
struct plugin_server *plugin_server_close(struct plugin_server *server);
