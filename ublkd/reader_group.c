/* SPDX-License-Identifier: MIT */
/* Who may read: from the setting to the group of this machine. */
#include "ublkd/reader_group.h"

#include "ublkd/base/log.h"
#include "ublkd/host/host.h"

struct api_readers reader_group_find(const struct setting_values *values)
{
        struct api_readers readers = {.everyone = values->everyone_reads, .name = values->readers_group};

        if (!readers.everyone)
                readers.group = host_group(readers.name);
        readers.has_group = readers.group != 0;
        return readers;
}

void reader_group_log(const struct api_readers *readers)
{
        if (!readers->everyone && !readers->has_group)
                log_info(NULL,
                        "There is no group %s: only root may read; to let others, create the group "
                        "(systemd-sysusers), add them to it, and reload ublkd",
                        readers->name);
}
