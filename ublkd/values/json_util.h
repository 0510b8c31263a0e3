/* SPDX-License-Identifier: MIT */
/* What every reader of JSON needs: a cJSON that frees itself, where in a document a value is, names that are
 * given twice. */
#pragma once

#include "ublkd/base/cleanup.h"

#include <cjson/cJSON.h>
#include <stdbool.h>

DEFINE_CLEANUP(cJSON, cJSON_Delete);
#define _cleanup_json_ _cleanup_(cJSON_Delete_pointer)

/* Where in a document: a chain from the inside out, on the stack of who goes through it. */
struct json_place {
        const struct json_place *outer;
        const char *
                name; /* of a member, an index; with `outer` NULL: the whole pointer of the outermost value */
};

/* Return the RFC 6901 pointer of the place, for the caller to free. NULL: out of memory. */
char *json_place_pointer(const struct json_place *place);

/* Return whether a later member of its object has the name of `member`. */
bool json_name_recurs(const cJSON *member);
