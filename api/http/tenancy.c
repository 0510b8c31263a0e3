/* SPDX-License-Identifier: MIT */
/* Whether a client of a Unix socket is a tenant. */
#include "api/http/tenancy.h"

#include "ublkd/peers/peer_cgroup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static enum policy_home home_for_policy(enum peer_home home)
{
        static const enum policy_home homes[_PEER_HOME_MAX] = {
                [PEER_HOME_UNASKED] = POLICY_HOME_UNTRUSTED,
                [PEER_AT_HOME] = POLICY_HOME_HOST,
                [PEER_IN_CONTAINER] = POLICY_HOME_UNTRUSTED,
                [PEER_IN_USER_NAMESPACE] = POLICY_HOME_CONTAINER,
                [PEER_HOME_UNKNOWN] = POLICY_HOME_UNTRUSTED,
        };

        return homes[home];
}

/* Whatever the cause, a group that cannot be read is not known. Return 0 or -ENOMEM. */
static int read_cgroup(int socket, char **ret)
{
        char path[PEER_CGROUP_SIZE];
        int r = peer_cgroup_of(socket, path);

        if (r < 0)
                return r == -ENOMEM ? r : 0;
        *ret = strdup(path);
        return *ret ? 0 : -ENOMEM;
}

int tenancy_find(int socket, const struct policy *policy, uid_t uid, gid_t gid, enum peer_home home,
        struct tenancy *tenancy)
{
        int r = peer_groups_read(socket, &tenancy->groups);

        if (r >= 0 && policy_asks_cgroups(policy))
                r = read_cgroup(socket, &tenancy->cgroup);
        if (r < 0)
                return r;
        tenancy->client = (struct policy_client){
                .uid = uid,
                .gid = gid,
                .groups = peer_groups_list(&tenancy->groups),
                .group_count = tenancy->groups.count,
                .cgroup = tenancy->cgroup,
                .home = home_for_policy(home),
        };
        tenancy->rule = policy_rule_for(policy, &tenancy->client);
        return 0;
}

void tenancy_clear(struct tenancy *tenancy)
{
        peer_groups_clear(&tenancy->groups);
        free(tenancy->cgroup);
        tenancy->cgroup = NULL;
        tenancy->rule = NULL;
}
