/* SPDX-License-Identifier: MIT */
/* Whether a restart accepts the loss of acknowledged data that the status of its device shows. */
#pragma once

#include "api/http/request.h"

#include "ublkd/store/device_store.h"

/* *ret: whether the loss is accepted; false where the request says nothing of it, or there is none. False:
 * the request accepts something else than what the status shows now, and there is a reply that says so. */
bool loss_consent_holds(struct request *request, const struct device_record *record, bool *ret);
