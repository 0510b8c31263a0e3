/* SPDX-License-Identifier: MIT */
/* Every route of the API. Generated from schemas/openapi/, as is the document that clients get. */
#pragma once

#include "api/http/routes.h"

extern const struct route route_table[];
