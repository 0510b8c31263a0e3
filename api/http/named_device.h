/* SPDX-License-Identifier: MIT */
/* The device that the path of a request names. Private to api/. */
#pragma once

#include "api/http/request.h"

/* Return the device if the client sees it; else NULL, and there is a reply. The store owns it. */
const struct device_record *named_device_find(struct request *request);

/* Return whether `record`, of view_find(), is a device; NULL: false, and there is a reply. For a handler that may need no
 * device, or replies to a wrong body first. */
bool named_device_exists(struct request *request, const struct device_record *record);
