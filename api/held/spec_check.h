/* SPDX-License-Identifier: MIT */
/* Whether a new spec can be served, which is known before the disk of the old one is taken away. Asked once;
 * the request is suspended meanwhile and then runs again, as in disk_check.h. */
#pragma once

#include "api/http/request.h"

/* True: the disk of `record` may be taken away for one of `spec`. False: there is a reply, or the request
 * will run again. Only what was found out for this generation of this device counts. */
bool spec_check(struct request *request, const struct device_record *record, const struct device_spec *spec);
