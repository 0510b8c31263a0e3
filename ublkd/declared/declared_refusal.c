/* SPDX-License-Identifier: MIT */
/* Which specs of files this ublkd refuses. */
#include "ublkd/declared/declared_refusal.h"

#include "ublkd/policy/policy_name.h"
#include "ublkd/store/device_change.h"

static const char *refuse_path(const struct declared_config *config, const struct declaration *declaration,
        const struct device_record *record)
{
        int r = config->refuse_unstable_paths ? device_spec_path_is_unstable(record, declaration->spec) : 0;

        if (r < 0)
                return "out of memory.";
        return r > 0 ? "its path may be another disk after a reboot, and this ublkd refuses such paths "
                       "(--unstable-paths); give a link in /dev/disk/by-id."
                     : NULL;
}

static const char *refuse_target(const struct declared_config *config, const struct declaration *declaration,
        const struct device_record *record)
{
        const struct target_tree *before = record && record->spec ? record->spec->tree : NULL;

        return !config->allow_fault_target && target_tree_new_for_tests(declaration->spec->tree, before) >= 0
                       ? "its target is for tests, and this ublkd has AllowFaultTarget=no; give another one."
                       : NULL;
}

/* A tenant could see that it is taken. */
static const char *refuse_name(const struct declared_config *config, const struct declaration *declaration,
        const struct device_record *record)
{
        const struct policy *policy = config->policy ? config->policy(config->policy_userdata) : NULL;

        return !record && policy_name_rule(policy, declaration->name)
                       ? "names that begin like this one are for users, by a rule of the policy "
                         "(namePrefix); "
                         "choose another name, or let the user create the device."
                       : NULL;
}

const char *declared_refusal(const struct declared_config *config, const struct declaration *declaration,
        const struct device_record *record)
{
        const char *refusal = declaration->no_image;

        if (!refusal)
                refusal = refuse_path(config, declaration, record);
        if (!refusal)
                refusal = refuse_target(config, declaration, record);
        return refusal ? refusal : refuse_name(config, declaration, record);
}
