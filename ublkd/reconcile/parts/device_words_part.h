/* SPDX-License-Identifier: MIT */
/* What the workers of a device have reported, one after the other. */
#pragma once

#include <stdint.h>

/* Private to device_words.c. Zeros: nothing yet. */
struct device_words {
        unsigned reasons; /* names of reasons that they have added: reason_from_worker() */
        uint64_t notices; /* worker_messages_takes_notice() */
};
