/* SPDX-License-Identifier: MIT */
/* Choose the path of an image, before the spec of a request is checked and stored. */
#pragma once

#include "api/http/request.h"

#include "ublkd/store/device_store.h"

/* Put the path of the image into *spec, which is replaced then, if its target names a pool. record: of the device, or
 * NULL: a new one. Return true; false: there is a reply. A POST for another pool than that of `record` stays without a
 * path: the name is taken, and the store refuses it for that. */
bool pool_path_settle(struct request *request, const struct device_record *record, struct device_spec **spec);
