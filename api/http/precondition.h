/* SPDX-License-Identifier: MIT */
/* ETag, If-Match and If-None-Match (RFC 9110, 13).
 *
 * The tag of a device is "GENERATION.UID.DIGEST": the generation of its spec, eight digits of its uid, and a
 * digest of the whole answer, status included. A change replaces the spec and nothing else, so for one the
 * first two decide, and a status that has moved on meanwhile is no reason to refuse it; "GENERATION" alone
 * will do as well. For GET the whole tag decides. The tag of anything else is the digest. */
#pragma once

#include "api/http/request.h"

/* For a change of the device `record` (NULL: there is none): reads both headers. 0 and a condition for
 * device_store_put(); -EINVAL and there is a reply. */
int precondition_read(
        struct request *request, const struct device_record *record, struct put_condition *condition);

/* The same for a change that is not a put. True, or false and there is a reply. */
bool precondition_holds(struct request *request, const struct device_record *record);

/* Gives the reply, which shows `record`, the tag of the device. */
void etag_set_device(struct request *request, const struct device_record *record);

/* For GET, once there is a reply: gives a good one a tag if it has none, and turns it into 304 or 412 if the
 * headers ask for that. */
void precondition_apply(struct request *request);
