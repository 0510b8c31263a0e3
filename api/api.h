/* SPDX-License-Identifier: MIT */
/* The REST API over HTTP: Unix sockets, TCP on loopback, sockets from systemd. It runs on the supervisor's
 * loop and never blocks it. Of the supervisor it sees the store, and what the callbacks of struct api_config
 * return. */
#pragma once

#include "api/http/config.h"

struct api;

/* Bind every address and start to answer. Return 0; or -errno with one problem that names cause and remedy
 * (address in use, not permitted, beyond loopback). On failure nothing is left behind. */
int api_new(
        sd_event *event, const struct api_config *config, struct api **ret, struct problem_list *problems);

/* Return whether of all users only root and the group of SocketGroup= can connect to each Unix socket. */
bool api_is_of_socket_group(const struct api *api);

/* Replace the rights of the configuration, but not the policy. If other groups have rights from now on, the connections of
 * all clients but root are closed: who they are was decided when they connected. The names in `rights` outlive the api. Call
 * from the loop. */
void api_set_rights(struct api *api, const struct api_rights *rights, bool refuse_unstable_paths);

/* Replace the policy (NULL: there are no tenants). The connections of all clients but root are closed, as above, if one of
 * the two has rules. Both are valid during the call, and the new one outlives the api or the next call. Call from the
 * loop. */
void api_set_policy(struct api *api, const struct policy *policy);

/* Answer the requests that wait for a fresh view of the host: config->host is fresh now. Call from the
 * loop. */
void api_host_seen(struct api *api);

/* Let requests run that wait for the first pass: config->is_ready() returns true now. Call from the loop. */
void api_boot_pass_done(struct api *api);

/* Listen again where a socket file was removed, also for a socket of systemd. Return how many were made, or -errno of the
 * first that cannot be made. Call from the loop. */
int api_listen_again(struct api *api);

/* Close every connection, suspended ones too, remove the socket files and free the api. `api` may be NULL.
 * Return NULL. */
struct api *api_free(struct api *api);
