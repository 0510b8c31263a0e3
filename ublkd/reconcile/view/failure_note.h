/* SPDX-License-Identifier: MIT */
/* The note of the last failure of a device. */
#pragma once

#include "ublkd/model/reason.h"

#include <stdbool.h>

/* The last failure. Other files may read it; only device_note.c writes it. */
struct failure_note {
        enum condition_reason reason; /* REASON_NONE: no failure */
        bool of_owner;                /* it names nothing that is not its owner's */
        char *sentence;               /* ends with a full stop; owned; NULL: no failure */
};
