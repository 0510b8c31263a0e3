/* SPDX-License-Identifier: MIT */
/* Which devices have metrics of their own when there are more than METRICS_DEVICES_MAX. Those of the administrators have the
 * first places, in the order of their names. Accounts share the others: each has one, then each that has more devices a
 * second one, and so on; in the last turn those with the lowest uids. An account is a tenant, or all subordinate users of one
 * range (policy.h). So neither the number nor the names of its devices take a place from root or from the share of another
 * tenant. */
#pragma once

#include "api/http/server.h"

struct metrics_shares;

/* Share `places`. `api` keeps its devices and its policy until the shares are freed. Return 0 or -ENOMEM. */
int metrics_shares_new(const struct api *api, size_t places, struct metrics_shares **ret);
/* Free shares. NULL is fine. Return NULL. */
struct metrics_shares *metrics_shares_free(struct metrics_shares *shares);
DEFINE_CLEANUP(struct metrics_shares, metrics_shares_free);
#define _cleanup_metrics_shares_ _cleanup_(metrics_shares_free_pointer)

/* Return whether the device has a place. Call it once for each device, in the order of the store. */
bool metrics_shares_take(struct metrics_shares *shares, const struct device_record *record);
