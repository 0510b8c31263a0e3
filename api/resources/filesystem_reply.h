/* SPDX-License-Identifier: MIT */
/* The answers of requests for file systems: a sentence for each verdict. */
#pragma once

#include "api/held/filesystem_check.h"

/* Return whether the file system is as the client wants it. */
bool filesystem_is_as_wanted(const struct filesystem_result *result);
/* Reply with the device, or with the problem. */
void filesystem_reply(
        struct request *request, const struct device_record *record, const struct filesystem_result *result);
