/* SPDX-License-Identifier: MIT */
/* The agent of polkit that asks for a password at this terminal: pkttyagent, if it is installed. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct settings;

/* Return whether the user of this process can be asked for a password: it is not root, standard input and standard error
 * are terminals, ublkd is reached over a Unix socket, and --no-ask-password was not given. */
bool agent_is_wanted(const struct settings *settings);

/* Start the agent for requests of this process, and wait until it is ready, for 10 seconds at most. polkit prefers an
 * agent of the session, as a desktop has one. Return its pid; -1: it cannot be started. */
pid_t agent_start(void);

/* End the agent, and wait for that. -1 is fine. Return -1. */
pid_t agent_end(pid_t agent);
