/* SPDX-License-Identifier: MIT */
/* A policy: what users may have who are not administrators of the devices of this host. Parsed from all files of its
 * directory (policy_load.h), immutable after that but for the subordinate uids of the host. No I/O.
 *
 * Which rule counts for a client is decided by numbers of the host alone, and only by those that the host has given to the
 * process:
 *  - its uid, on the host and in a container with a user namespace of its own: there the kernel translates it, and an
 *    administrator has given the range (subuid(5)) or the user its own uid;
 *  - its groups, on the host only. The kernel checks the numbers that SO_PEERGROUPS has, but in a container it is the image
 *    that chooses among all groups that were mapped to it. These were mapped so that files can have owners, not to make the
 *    container a member. Membership in /etc/group is about users who log in to the host;
 *  - nothing in a container whose root can choose its numbers (ublkd/peers/peer_home.h has which), or where it is not known:
 *    uid 1000 there may be another person than user 1000 of the host. The caller has to pass POLICY_HOME_UNTRUSTED for it.
 *  - its control group, on the host only, if a rule names groups or units: the host has put it there. In a user namespace one
 *    process can have all of its uids, and each would be a tenant of its own;
 *  - neither its groups nor its control group, if its uid is one of DynamicUser=, which the next service has as well, or a
 *    subordinate one: one user can have a process of the host, in the groups of that user, as each uid of its range in
 *    /etc/subuid, by a set-uid file that such a uid owns.
 * Uid 0 never matches: root of the host is an administrator, and no tenant. */
#pragma once

#include "ublkd/base/problem.h"
#include "ublkd/policy/policy_accounts.h"
#include "ublkd/policy/policy_options.h"

#include <stdbool.h>
#include <sys/types.h>

enum { POLICY_CPU_MASK_SIZE = 4096 / 8 };

struct policy_pool {
        char *name;
        char *directory; /* absolute; only its text was checked */
};

struct policy_rule {
        char *place; /* "FILE:LINE" */
        struct policy_rule_options options;
        struct uid_range *uids; /* of users, and subordinate ones */
        size_t uid_count;
        gid_t *gids;
        size_t gid_count;
        bool is_for_one;             /* `who` is exactly one user; uids has it, if it exists */
        int64_t ids_first, ids_last; /* -1: none */
        unsigned char cpus[POLICY_CPU_MASK_SIZE];
};

struct policy {
        char *directory; /* of its files */
        struct policy_pool *pools;
        size_t pool_count;
        struct policy_rule *rules; /* in the order of the files and their lists */
        size_t rule_count;
        struct uid_range *subuids; /* of all users but root, if a rule is for groups or control groups */
        size_t subuid_count;
        struct problem_list notes; /* warnings: names that do not exist, a ceiling too low */
};

enum policy_home {
        POLICY_HOME_UNTRUSTED, /* not known, or a container whose numbers its image chose: no rule matches */
        POLICY_HOME_HOST,
        POLICY_HOME_CONTAINER, /* with a user namespace of its own */
        _POLICY_HOME_MAX
};

/* Who asks. All numbers are those of the host. */
struct policy_client {
        uid_t uid;
        gid_t gid;
        const gid_t *groups; /* supplementary ones */
        size_t group_count;
        const char *cgroup; /* NULL: not known */
        enum policy_home home;
};

/* Create a policy without rules. Return 0 or -ENOMEM. */
int policy_new(const char *directory, struct policy **ret);
/* Free a policy. NULL is fine. Return NULL. */
struct policy *policy_free(struct policy *policy);
DEFINE_CLEANUP(struct policy, policy_free);
#define _cleanup_policy_ _cleanup_(policy_free_pointer)

/* Set the subordinate uids of all users but root. Takes `ranges`, which free() frees. */
void policy_set_subuids(struct policy *policy, struct uid_range *ranges, size_t count);
/* Return the pool with that name, or NULL. policy NULL: it has none. */
const struct policy_pool *policy_pool(const struct policy *policy, const char *name);
/* Return the uids whose devices count together with those of `uid`, for which the rule matches: all subordinate uids of a
 * range in /etc/subuid, as one user can have them all; else that uid alone. */
struct uid_range policy_account(const struct policy_rule *rule, uid_t uid);
/* Return the first uid of those that count together with `uid` by the first rule that names it; that uid, if none does. For a
 * uid without a client, so without asking what else the rule is for (units, control groups), or whether one for a group
 * matches first: policy_account() of the rule for a client can be another. policy NULL: it has no rules. */
uint32_t policy_account_of(const struct policy *policy, uid_t uid);
/* Return whether a rule is for groups, control groups or units. policy NULL: none is. */
bool policy_asks_groups(const struct policy *policy);
/* Return whether a rule is for control groups or units, so that the client needs its group. policy NULL: none is. */
bool policy_asks_cgroups(const struct policy *policy);
/* Return the first rule that matches the client, or NULL. policy NULL: it has no rules. No rule matches after one that
 * could not be compared, as the control group of the client is not known; nor, in a user namespace, after one for a control
 * group that the client is in, or one for groups that gives nothing, as the client may be in these; nor after one for a group
 * or control group that it is in, with a subordinate uid or one of DynamicUser=. */
const struct policy_rule *policy_rule_for(const struct policy *policy, const struct policy_client *client);
/* Add a problem (NoPolicyRule, DynamicUser, SubordinateUser) that says which rule the client lacks. policy NULL: it was not
 * loaded. Return 0 or -ENOMEM. */
int policy_add_no_rule(
        const struct policy *policy, const struct policy_client *client, struct problem_list *problems);
