/* If-Match and If-None-Match, against the generation of a device. A status changes without a new generation,
 * so these are for changes only: a GET never answers 304. */
#pragma once

#include "api/request.h"

/* Reads both headers for the device `record` (NULL: there is none). 0 and a condition for device_store_put();
 * -EINVAL and there is a reply. */
int precondition_read(
        struct request *request, const struct device_record *record, struct put_condition *condition);

/* The same for a request that is not a put. True, or false and there is a reply. */
bool precondition_holds(struct request *request, const struct device_record *record);
