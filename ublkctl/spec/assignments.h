/* SPDX-License-Identifier: MIT */
/* FIELD=VALUE arguments into JSON. */
#pragma once

#include "ublkctl/text/exit_status.h"

#include <cjson/cJSON.h>

/* Puts each "a.b=value" into `object`. A value is JSON where it can be read as such, else a string; a label
 * ("labels.KEY=VALUE") is a string (or null) always, and its key may hold dots; bytes may be written as
 * size_argument() takes them. No field may stand there twice. Says what is wrong.
 * STATUS_OK, _USAGE or _FAILED (memory). */
enum exit_status assignments_add(cJSON *object, int argc, char *argv[]);
