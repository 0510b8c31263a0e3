/* SPDX-License-Identifier: MIT */
/* What the service manager knows of ublkd. */
#include "ublkd/tasks/service_state.h"

#include "ublkd/base/clock.h"

#include <inttypes.h>
#include <systemd/sd-daemon.h>

void service_state_ready(void)
{
        (void)sd_notify(0, "READY=1");
}

void service_state_reloading(void)
{
        (void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, monotonic_now());
}

void service_state_stopping(size_t disks)
{
        if (disks == 0)
                (void)sd_notify(0, "STOPPING=1\nSTATUS=Stopped; no disk is in service");
        else
                (void)sd_notifyf(0,
                        "STOPPING=1\nSTATUS=Stopped; disks that stay in service: %zu; 'systemctl start "
                        "ublkd' and "
                        "'systemctl stop ublkd.target' take them down",
                        disks);
}
