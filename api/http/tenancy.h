/* SPDX-License-Identifier: MIT */
/* Whether a client of a Unix socket is a tenant: a user to whom a rule of the policy gives
 * devices of its own. Private to api/. */
#pragma once

#include "ublkd/model/tenant.h"
#include "ublkd/peers/peer_groups.h"
#include "ublkd/peers/peer_home.h"
#include "ublkd/policy/policy.h"

/* Who asks, and the rule that counts. Zero-initialise; the groups of the client are in here, so it cannot be copied. */
struct tenancy {
        struct policy_client client;
        struct peer_groups groups;      /* the client points into it */
        char *cgroup;                   /* the same; NULL: no rule asks for it, or it is not known */
        const struct policy_rule *rule; /* of the policy that was asked; NULL: the client is not a tenant */
};

/* Find the rule of `policy` (NULL: there is none) for the process at the other end of a connected socket, with that user
 * and group, which runs there. Return 0 (tenancy->rule may be NULL) or -errno. */
int tenancy_find(int socket, const struct policy *policy, uid_t uid, gid_t gid, enum peer_home home,
        struct tenancy *tenancy);
void tenancy_clear(struct tenancy *tenancy);
#define _cleanup_tenancy_ _cleanup_(tenancy_clear)
