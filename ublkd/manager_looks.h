/* SPDX-License-Identifier: MIT */
/* What ublkd looks for on the host when a client asks for it (GET /host), and for the metrics: disks that it has no device
 * for, and how the state directory is. The looks are processes apart; the API is called when they have ended. */
#pragma once

#include <stdbool.h>

struct manager;

/* Open what looks; nothing is looked at yet. Return 0 or -errno. */
int manager_open_foreign_scan(struct manager *manager);
int manager_open_state_look(struct manager *manager);

/* List the records and scan for disks; incomplete on ENOMEM. A list that waits for its scan does not change. Return whether
 * a scan is under way. */
bool manager_look_for_disks(struct manager *manager);
/* Look at the state directory, for the next reader of the metrics. userdata: the manager, as for the API. */
void manager_look_at_state(void *userdata);
/* Look at both for a client. Return true if api_host_seen() follows; false: all is known now. userdata: the manager. */
bool manager_look_at_host(void *userdata);
