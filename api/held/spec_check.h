/* SPDX-License-Identifier: MIT */
/* Try whether a worker can serve a new spec, before ublkd removes the disk of the old spec. A request asks
 * once; it is suspended meanwhile and then runs again, as in disk_check.h. */
#pragma once

#include "api/http/request.h"

/* Return true if ublkd may replace the disk of `record` by one of `spec`. False: there is a reply, or the
 * request will run again. A result for another generation of the device does not count. */
bool spec_check(struct request *request, const struct device_record *record, const struct device_spec *spec);
