/* SPDX-License-Identifier: MIT */
/* What a tenant reads in place of a message that may name what belongs to others: their processes, mount points, devices
 * and files. Pure.
 *
 * A message is shown in full only if the table says of its reason that it names nothing of others. */
#pragma once

#include "ublkd/model/reason.h"

enum reader {
        READER_OF_ALL, /* who sees all devices */
        READER_TENANT, /* who sees what is its own */
};

/* Return whether a tenant may read the messages with this reason in full. */
bool tenant_text_is_full(enum condition_reason reason);

/* Return what the reader may read of a message with this reason: the message, or a sentence without what belongs to others,
 * which is static. message: NULL: there is none. */
const char *tenant_text(enum reader reader, enum condition_reason reason, const char *message);
