/* SPDX-License-Identifier: MIT */
/* If-Match and If-None-Match (RFC 9110, 13).
 *
 * A change replaces the spec and nothing else, so for one the generation and the uid of a device's tag decide
 * (etag.h), and a status that has moved on meanwhile is no reason to refuse it. For GET the whole tag
 * decides.
 */
#pragma once

#include "api/http/request.h"

/* For a change of the device `record` (NULL: there is none): reads both headers. 0 and a condition for
 * device_store_put(); -EINVAL and there is a reply. */
int precondition_read(
        struct request *request, const struct device_record *record, struct put_condition *condition);

/* The same for a change that is not a put. True, or false and there is a reply. */
bool precondition_holds(struct request *request, const struct device_record *record);

/* For GET, once there is a reply: gives a good one a tag if it has none, and turns it into 304 or 412 if the
 * headers ask for that. */
void precondition_apply(struct request *request);
