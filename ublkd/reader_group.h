/* SPDX-License-Identifier: MIT */
/* Who may read: from the setting to the group of this machine. */
#pragma once

#include "api/api.h"
#include "ublkd/config/setting_values.h"

/* Return who may read, with the group as /etc/group has it now, which may block. The name belongs to `values`. */
struct api_readers reader_group_find(const struct setting_values *values);
/* Log it if there is no such group, which is not an error. */
void reader_group_log(const struct api_readers *readers);
