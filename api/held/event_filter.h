/* SPDX-License-Identifier: MIT */
/* Which events a request asks for. */
#pragma once

#include "api/http/query.h"
#include "ublkd/model/device_event.h"

/* ?device= and ?label=. The labels are those that the device had then. */
bool event_filter_matches(const struct query *query, const struct device_event *event);
