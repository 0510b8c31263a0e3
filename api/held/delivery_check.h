/* SPDX-License-Identifier: MIT */
/* Suspend a request until the private node of its device, or its file system, is in a container, or is not. Then its handler
 * runs again from its beginning. */
#pragma once

#include "api/http/request.h"

#include "ublkd/nodes/delivery_wire.h"
#include "ublkd/store/device_store.h"

/* Return whether the request has a delivery that has ended. */
bool delivery_is_over(const struct request *request);

/* Return the report of the delivery; the request owns it. NULL: the handler returns without a reply, because it
 * will run again, or there is a reply: the delivery did not begin. */
const struct delivery_report *delivery_check(
        struct request *request, const struct device_record *record, const struct delivery_wish *wish);
