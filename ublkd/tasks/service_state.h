/* SPDX-License-Identifier: MIT */
/* What the service manager knows of ublkd (sd_notify(3)). Without one nothing happens. */
#pragma once

#include <stddef.h>

/* Report that ublkd has started, or has ended its reload. */
void service_state_ready(void);
/* Report that ublkd reloads; service_state_ready() must follow. */
void service_state_reloading(void);
/* Report that ublkd stops, and how many disks stay in service. */
void service_state_stopping(size_t disks);
