/* SPDX-License-Identifier: MIT */
/* Check what a tenant asks for: only its own devices, within what the policy gives it. */
#include "api/resources/tenant_check.h"

#include "api/http/audit.h"
#include "api/http/permission.h"
#include "api/http/respond.h"
#include "api/http/server.h"
#include "api/http/tenancy.h"
#include "api/http/view.h"
#include "ublkd/policy/policy_check.h"
#include "ublkd/policy/policy_name.h"

/* Return the usage of the account without the device `name`. A device counts with the size of its spec, also if its
 * image takes less now. unknown: bytes of a device whose spec cannot be read. */
static struct policy_usage usage_of(
        const struct device_store *store, const struct uid_range *account, const char *name, uint64_t unknown)
{
        struct store_usage usage = device_store_usage(store, account->first, account->last, name);

        return (struct policy_usage){
                .devices = usage.devices,
                .bytes = usage.bytes + usage.unreadable * unknown,
        };
}

static void reply_refused(struct request *request, int error, const struct problem_list *problems)
{
        if (error == -EPERM && problems->count > 0)
                reply_problems(request, PROBLEM_FORBIDDEN, problems);
        else
                reply_error(request, error, "Cannot check the policy");
}

/* Find the rule for the client by the policy that is in force now. Policy and control group may have changed since the
 * client connected. Return whether there is a rule; else it has replied. */
static bool find_rule(struct request *request, struct tenancy *ret)
{
        const struct policy *policy = request->api->config.rights.policy;
        const struct peer *peer = &request->peer;
        _cleanup_problems_ struct problem_list problems = {};
        int r = tenancy_find(request->client->fd, policy, peer->uid, peer->gid, peer->home, ret);

        if (r >= 0) {
                audit_note_rule(request, ret->rule ? ret->rule->place : "", ret->client.cgroup);
                if (ret->rule)
                        return true;
                r = policy_add_no_rule(policy, &ret->client, &problems);
        }
        reply_refused(request, r < 0 ? r : -EPERM, &problems);
        return false;
}

bool may_have_mounts(struct request *request, struct filesystem_account *ret)
{
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_tenancy_ struct tenancy tenancy = {};
        struct uid_range account;
        int r;

        if (view_manages_all(request))
                return true;
        if (!find_rule(request, &tenancy))
                return false;
        r = policy_check_mount(tenancy.rule, &problems);
        if (r < 0) {
                reply_refused(request, r, &problems);
                return false;
        }
        account = policy_account(tenancy.rule, request->peer.uid);
        *ret = (struct filesystem_account){.is_set = true, .first = account.first, .last = account.last};
        return true;
}

bool may_change(struct request *request, const struct device_record *record)
{
        _cleanup_tenancy_ struct tenancy tenancy = {};

        if (view_may_change(request, record))
                return view_manages_all(request) || find_rule(request, &tenancy);
        permission_refuse(request);
        return false;
}

static bool policy_allows(struct request *request, const struct device_spec *spec)
{
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_tenancy_ struct tenancy tenancy = {};
        struct policy_usage usage;
        struct uid_range account;
        int r;

        if (!find_rule(request, &tenancy))
                return false;
        account = policy_account(tenancy.rule, request->peer.uid);
        usage = usage_of(
                request->api->config.store, &account, spec->options.name, tenancy.rule->options.size);
        r = policy_check(tenancy.rule, &tenancy.client, spec, &usage, &problems);
        if (r < 0)
                reply_refused(request, r, &problems);
        return r >= 0;
}

/* A name that a tenant may try would be taken then, and show that there is a device. One from before stays. */
static bool takes_no_name(
        struct request *request, const struct device_record *record, const struct device_spec *spec)
{
        const struct policy *policy = request->api->config.rights.policy;
        const struct policy_rule *rule = record ? NULL : policy_name_rule(policy, spec->options.name);
        _cleanup_problems_ struct problem_list problems = {};

        if (!rule)
                return true;
        (void)problem_add(&problems, EINVAL, "/name", "NameOfTenant",
                "names that begin like this one are for users, by the rule %s (%s); choose another name, or "
                "let "
                "the user create the device",
                rule->options.name, rule->place);
        reply_problems(request, PROBLEM_INVALID_SPEC, &problems);
        return false;
}

/* An administrator may not either: without a recovery the kernel takes the disk away before ublkd has taken its node from the tenant. */
static bool keeps_recovery(
        struct request *request, const struct device_record *record, const struct device_spec *spec)
{
        _cleanup_problems_ struct problem_list problems = {};

        if (!record || !tenant_is_set(record->tenant) || device_spec_on_crash(spec) != ON_CRASH_NONE)
                return true;
        (void)problem_add(&problems, EINVAL, "/recovery/onCrash", "NoRecoveryForTenant",
                "the device has a tenant, whose node would outlive the disk; give onCrash \"reissue\", "
                "\"queue\" or \"fail\"");
        reply_problems(request, PROBLEM_INVALID_SPEC, &problems);
        return false;
}

/* A tenant who has had a node may have written the file system that is to be mounted. An administrator cannot change
 * that. If the spec cannot be read, the tenant may have had a node. */
static bool keeps_node(
        struct request *request, const struct device_record *record, const struct device_spec *spec)
{
        _cleanup_problems_ struct problem_list problems = {};

        if (!record || !tenant_is_set(record->tenant) || spec->options.private_node
                || (record->spec && !record->spec->options.private_node))
                return true;
        (void)problem_add(&problems, EINVAL, "/privateNode", "NodeWasGiven",
                "the tenant of the device has had a node of the disk, so it cannot become false; create "
                "another "
                "device with it");
        reply_problems(request, PROBLEM_INVALID_SPEC, &problems);
        return false;
}

/* After the unmount a container may still have the file system, if it has covered the mount or passed it on. Then its
 * tenant must not write to the disk. */
static bool keeps_volume(
        struct request *request, const struct device_record *record, const struct device_spec *spec)
{
        _cleanup_problems_ struct problem_list problems = {};

        if (!record || !tenant_is_set(record->tenant) || !*record->filesystem || !record->spec
                || !device_spec_is_volume(record->spec) || device_spec_is_volume(spec))
                return true;
        (void)problem_add(&problems, EINVAL, spec->options.private_node ? "/privateNode" : "",
                "FileSystemWasMade",
                "the tenant of the device may still have its file system mounted, which the kernel reads as "
                "root, "
                "so users get no right to write to the disk; create another device");
        reply_problems(request, PROBLEM_INVALID_SPEC, &problems);
        return false;
}

bool spares_tenants(
        struct request *request, const struct device_record *record, const struct device_spec *spec)
{
        return !view_manages_all(request)
               || (takes_no_name(request, record, spec) && keeps_recovery(request, record, spec)
                       && keeps_node(request, record, spec) && keeps_volume(request, record, spec));
}

bool may_put(struct request *request, const struct device_record *record, const struct device_spec *spec,
        struct put_condition *condition)
{
        if (view_manages_all(request))
                return true;
        if (!policy_allows(request, spec)) /* a name that is not the tenant's, among others */
                return false;
        condition->tenant = request->peer.tenant;
        if (!record)
                return true;
        if (view_has(request, record))
                return may_change(request, record) && keeps_node(request, record, spec)
                       && keeps_volume(request, record, spec);
        reply_problem(request, PROBLEM_NAME_TAKEN, "The name %s cannot be used; choose another name.",
                spec->options.name);
        return false;
}
