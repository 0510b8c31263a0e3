/* SPDX-License-Identifier: MIT */
/* One line about all devices, for an administrator who looks at the service and not at a device. */
#pragma once

#include "ublkd/base/problem.h"
#include "ublkd/store/device_store.h"

enum { SERVICE_SUMMARY_SIZE = 512 };

/* Write how many devices there are, how many are Live, and the reasons of the first ones with a problem; then the number
 * of problems of the host, which `host` counts (both lists of struct host). Cut at the end if it is too long. */
void service_summary(
        const struct device_store *store, size_t host_problems, char ret[static SERVICE_SUMMARY_SIZE]);
