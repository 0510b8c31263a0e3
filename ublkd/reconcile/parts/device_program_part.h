/* SPDX-License-Identifier: MIT */
/* The program of the workers that ublkd starts now. */
#pragma once

#include "ublkd/proto/worker_msg.h"

/* Private to device_program.c. The version of the program that is started now, as the last worker that ublkd has started has
 * sent it; before that the version of ublkd itself. "": unknown. */
struct worker_program {
        char version[WORKER_VERSION_SIZE];
};
