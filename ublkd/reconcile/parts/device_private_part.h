/* SPDX-License-Identifier: MIT */
/* The private node of a tenant's disk, as far as it is known. */
#pragma once

enum private_state {
        PRIVATE_UNKNOWN, /* an earlier ublkd may have made it */
        PRIVATE_NONE,
        PRIVATE_GIVEN,
        PRIVATE_SHUT, /* without any rights */
        _PRIVATE_STATE_MAX
};

/* Private to device_private.c. */
struct device_private {
        enum private_state state;
        int error; /* -errno of the last call, which has made an event; 0: it worked */
};
