/* SPDX-License-Identifier: MIT */
/* Check whether a restart accepts the loss of acknowledged data that the status of its device shows. */
#pragma once

#include "api/http/request.h"

#include "ublkd/store/device_store.h"

/* Set *ret to whether the request accepts the loss; false if it does not mention one, or there is none.
 * Return false if it accepts something else than the status shows now; then there is a reply. */
bool loss_consent_holds(struct request *request, const struct device_record *record, bool *ret);
