/* SPDX-License-Identifier: MIT */
/* The description of a disk for container engines, as far as it is written. */
#pragma once

#include <stdint.h>

/* Private to device_cdi.c. */
struct device_cdi {
        uint64_t written; /* the generation of the record that the file is of; 0: there is no file */
        int error;        /* -errno of the last call, which has made an event; 0: it worked */
};
