/* SPDX-License-Identifier: MIT */
/* Select the events that a request asks for. */
#pragma once

#include "api/http/query.h"
#include "ublkd/model/device_event.h"

/* Return whether an event matches ?device= and ?label=. The event's labels are those that the device had at
 * the time. */
bool event_filter_matches(const struct query *query, const struct device_event *event);
