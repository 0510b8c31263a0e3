/* SPDX-License-Identifier: MIT */
/* What was reported of the region that a device's workers share with the supervisor. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Private to device_shared.c. */
struct device_shared {
        bool unkept;               /* reported: the runtime directory does not have the current record */
        uint64_t loss_quiet_until; /* CLOCK_MONOTONIC, in µs: no event of lost kept memory before */
};
