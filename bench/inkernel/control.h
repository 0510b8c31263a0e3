/* SPDX-License-Identifier: MIT */
/* Control commands of the driver, one at a time. Each function returns 0 or -errno. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct disk {
        int number; /* negative: the driver chooses */
        uint32_t depth;
        uint64_t size; /* bytes */
        bool null, batch, recovery;
};

/* Add a disk with its parameters; sets its number. */
int control_add(struct disk *disk);
int control_start(int number);
int control_start_recovery(int number);
int control_end_recovery(int number);
int control_stop(int number);
int control_delete(int number);
/* Read the state: UBLK_S_DEV_*. */
int control_state(int number, unsigned *ret);
