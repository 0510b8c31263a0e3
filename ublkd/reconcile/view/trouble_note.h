/* SPDX-License-Identifier: MIT */
/* Why the last thing went wrong with a device. */
#pragma once

#include "ublkd/model/reason.h"

/* What happened. May be read; device_note.c alone writes it. */
struct trouble_note {
        enum condition_reason reason; /* REASON_NONE: nothing did */
        char *sentence;               /* ends with a full stop; owned; NULL: nothing did */
};
