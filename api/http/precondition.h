/* SPDX-License-Identifier: MIT */
/* If-Match and If-None-Match (RFC 9110, 13).
 *
 * A change replaces the spec only. So a change compares the generation and the uid in the tag of a device
 * (etag.h), and a newer status does not make it fail. GET compares the whole tag. */
#pragma once

#include "api/http/request.h"

/* Read both headers for a change of the device `record` (NULL: it does not exist). Return 0 and a condition
 * for device_store_put(); -EINVAL with a reply. */
int precondition_read(
        struct request *request, const struct device_record *record, struct put_condition *condition);

/* Read both headers for a change that is not a put. Return true; or false with a reply. */
bool precondition_holds(struct request *request, const struct device_record *record);

/* Give a good reply to GET its tag if it has none, and turn it into 304 or 412 if the headers say so. Call
 * after the reply is set. */
void precondition_apply(struct request *request);
