/* SPDX-License-Identifier: MIT */
/* Who may read, and who may change devices: from the settings to the groups of this machine. */
#include "ublkd/tasks/access_groups.h"

#include "ublkd/base/log.h"
#include "ublkd/host/host.h"

/* The group of root, 0, has no such rights: 0 stands for none. */
static struct api_group find(const char *name)
{
        struct api_group group = {.name = name, .gid = name ? host_group(name) : 0};

        group.exists = group.gid != 0;
        return group;
}

struct api_rights access_groups_find(const struct setting_values *values)
{
        return (struct api_rights){
                .everyone_reads = values->everyone_reads,
                .readers = find(values->everyone_reads ? NULL : values->readers_group),
                .administrators = find(values->administrators_group),
                .asks_polkit = values->asks_polkit,
        };
}

void access_groups_log(const struct api_rights *rights)
{
        if (rights->readers.name && !rights->readers.exists)
                log_info(NULL,
                        "There is no group %s: only root may read; to let others, create the group "
                        "(systemd-sysusers), add them to it, and reload ublkd",
                        rights->readers.name);
        if (rights->administrators.name && !rights->administrators.exists)
                log_info(NULL,
                        "There is no group %s: only root may change devices; to let others, create the group "
                        "(systemd-sysusers), add them to it, and reload ublkd",
                        rights->administrators.name);
}

int access_groups_of_socket(const struct config *config, struct api_group *ret, struct problem_list *problems)
{
        struct api_group group = find(config->values.socket_group);

        if (group.name && !group.exists) {
                (void)problem_add(problems, ENOENT, "", "NoSuchGroup",
                        "%s: SocketGroup: there is no group %s; create it, or correct the setting",
                        config_place(config, "SocketGroup"), group.name);
                return -ENOENT;
        }
        *ret = group;
        return 0;
}
