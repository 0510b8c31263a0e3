/* SPDX-License-Identifier: MIT */
/* The watch for the release of a disk whose worker has died. */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

/* Private to device_release.c. Zeros: nothing is watched. */
struct device_release {
        sd_event_source *closed; /* NULL: not watched, or seen */
        bool watched;            /* since the disk was served; one watch a death */
};
