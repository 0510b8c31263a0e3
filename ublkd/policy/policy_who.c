/* SPDX-License-Identifier: MIT */
/* Who a rule is for: from names and numbers to numbers. */
#include "ublkd/policy/policy_who.h"

#include "ublkd/policy/policy_accounts.h"
#include "ublkd/policy/policy_fault.h"
#include "ublkd/values/path_text.h"

#include <errno.h>
#include <string.h>

struct who {
        struct policy_rule *rule;
        const struct policy_accounts *accounts;
        const char *pointer;
        struct policy_faults *faults;
        struct problem_list *notes;
};

static int add_uid(struct policy_rule *rule, uint32_t uid)
{
        struct uid_range *uids = reallocarray(rule->uids, rule->uid_count + 1, sizeof(*uids));

        if (!uids)
                return -ENOMEM;
        rule->uids = uids;
        uids[rule->uid_count++] = (struct uid_range){.first = uid, .last = uid};
        return 0;
}

static int add_gid(struct policy_rule *rule, uint32_t gid)
{
        gid_t *gids = reallocarray(rule->gids, rule->gid_count + 1, sizeof(*gids));

        if (!gids)
                return -ENOMEM;
        rule->gids = gids;
        gids[rule->gid_count++] = gid;
        return 0;
}

static int note(const struct who *who, const char *what, const char *name, const char *why)
{
        return problem_add(who->notes, ENOENT, "", "PolicyNameUnknown",
                "%s: the rule %s names the %s %s: %s; it matches no client by that", who->rule->place,
                who->rule->options.name, what, name, why);
}

/* A list that cannot be read is a fault: which rule counts would depend on luck. */
static int fault(const struct who *who, const char *list, int index, int error)
{
        if (error == -ENOMEM)
                return error;
        return policy_fault_add(
                who->faults, who->pointer, list, index, "the name cannot be looked up: %s", strerror(-error));
}

/* How one entry of a list is looked up, and where its number goes. */
struct kind {
        const char *list, *what, *unknown;
        int (*find)(const struct policy_accounts *accounts, const char *name, uint32_t *ret);
        int (*add)(struct policy_rule *rule, uint32_t number);
};

static const struct kind users = {
        .list = "who/users",
        .what = "user",
        .unknown = "there is none in /etc/passwd; correct the name, or give the number",
        .find = policy_accounts_user,
        .add = add_uid,
};
static const struct kind groups = {
        .list = "who/groups",
        .what = "group",
        .unknown = "there is none in /etc/group; correct the name, or give the number",
        .find = policy_accounts_group,
        .add = add_gid,
};

static int add_entry(const struct who *who, const struct kind *kind, const cJSON *item, int index)
{
        uint32_t number = 0;
        int r;

        if (cJSON_IsNumber(item))
                return kind->add(who->rule, (uint32_t)item->valuedouble);
        r = kind->find(who->accounts, item->valuestring, &number);
        if (r < 0)
                return fault(who, kind->list, index, r);
        if (r == 0)
                return note(who, kind->what, item->valuestring, kind->unknown);
        if (number == 0)
                return note(who, kind->what, item->valuestring, "its number is 0, which no tenant has");
        return kind->add(who->rule, number);
}

static int add_list(const struct who *who, const struct kind *kind, const cJSON *list)
{
        const cJSON *item;
        int index = 0, r = 0;

        cJSON_ArrayForEach (item, list) {
                if (r >= 0)
                        r = add_entry(who, kind, item, index);
                index++;
        }
        return r;
}

static int add_subuids(const struct who *who, const cJSON *list)
{
        struct policy_rule *rule = who->rule;
        const cJSON *item;
        int index = 0, r = 0;

        cJSON_ArrayForEach (item, list) {
                if (r >= 0)
                        r = policy_accounts_subuids(
                                who->accounts, item->valuestring, &rule->uids, &rule->uid_count);
                if (r < 0)
                        r = fault(who, "who/subuidsOf", index, r);
                else if (r == 0)
                        r = note(who, "user", item->valuestring, "it has no range in /etc/subuid");
                index++;
                if (r < 0)
                        return r;
        }
        return 0;
}

/* As systemd names units. */
static bool is_unit(const char *name)
{
        static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789:_.\\@-";

        return name[strspn(name, letters)] == '\0';
}

/* Every process is in the root slice, and none in a template. */
static int check_units(const struct who *who, const cJSON *list)
{
        const cJSON *item;
        int index = 0, r = 0;

        cJSON_ArrayForEach (item, list) {
                const char *name = item->valuestring;

                if (r >= 0 && !is_unit(name))
                        r = policy_fault_add(who->faults, who->pointer, "who/units", index,
                                "%s cannot be the name of a unit; give the name that systemctl shows", name);
                else if (r >= 0 && strcmp(name, "-.slice") == 0)
                        r = policy_fault_add(who->faults, who->pointer, "who/units", index,
                                "all processes are in -.slice; name a unit");
                else if (r >= 0 && strstr(name, "@."))
                        r = policy_fault_add(who->faults, who->pointer, "who/units", index,
                                "%s is a template; name an instance of it, or the slice of all instances",
                                name);
                index++;
        }
        return r;
}

/* The group of a client is compared with them as text. */
static int check_cgroups(const struct who *who, const cJSON *list)
{
        const cJSON *item;
        int index = 0, r = 0;

        cJSON_ArrayForEach (item, list) {
                _cleanup_free_ char *plain = NULL;

                if (r >= 0)
                        r = path_make_absolute("/", item->valuestring, &plain);
                if (r >= 0 && strcmp(plain, "/") == 0)
                        r = policy_fault_add(who->faults, who->pointer, "who/cgroups", index,
                                "all processes are below /; name a group");
                else if (r >= 0 && strcmp(plain, item->valuestring) != 0)
                        r = policy_fault_add(who->faults, who->pointer, "who/cgroups", index,
                                "%s has \".\", \"..\", \"//\" or a \"/\" at its end; give %s",
                                item->valuestring, plain);
                index++;
        }
        return r;
}

int policy_who_parse(struct policy_rule *rule, const struct policy_accounts *accounts, const char *pointer,
        struct policy_faults *faults, struct problem_list *notes)
{
        const struct who who = {
                .rule = rule, .accounts = accounts, .pointer = pointer, .faults = faults, .notes = notes};
        int user_count = cJSON_GetArraySize(rule->options.who.users);
        int others = cJSON_GetArraySize(rule->options.who.groups)
                     + cJSON_GetArraySize(rule->options.who.subuids_of)
                     + cJSON_GetArraySize(rule->options.who.units)
                     + cJSON_GetArraySize(rule->options.who.cgroups);
        int r;

        rule->is_for_one = user_count == 1 && others == 0;
        if (user_count + others == 0)
                return policy_fault_add(faults, pointer, "who", -1,
                        "it names no client; give users, groups, subuidsOf, units or cgroups an entry");
        r = add_list(&who, &users, rule->options.who.users);
        if (r >= 0)
                r = add_list(&who, &groups, rule->options.who.groups);
        if (r >= 0)
                r = add_subuids(&who, rule->options.who.subuids_of);
        if (r >= 0)
                r = check_units(&who, rule->options.who.units);
        if (r >= 0)
                r = check_cgroups(&who, rule->options.who.cgroups);
        return r;
}
