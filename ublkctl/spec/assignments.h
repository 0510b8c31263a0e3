/* SPDX-License-Identifier: MIT */
/* Convert FIELD=VALUE arguments to JSON. */
#pragma once

#include "ublkctl/text/exit_status.h"

#include <cjson/cJSON.h>

/* Add each "a.b=value" to `object`. A value is JSON if it parses as JSON, else a string. A label
 * ("labels.KEY=VALUE") is always a string or null, and its key may contain dots. Bytes may have the form of
 * size_argument(); owner.uid and owner.gid may be names of this machine. A field may occur once. On a fault
 * print a sentence. Return STATUS_OK, _USAGE or _FAILED (memory, an unknown name). */
enum exit_status assignments_add(cJSON *object, int argc, char *argv[]);
