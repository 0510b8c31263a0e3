/* SPDX-License-Identifier: MIT */
/* The path in a spec of a client in a container: another one on the host. */
#pragma once

#include "api/http/request.h"

#include "ublkd/store/device_store.h"

/* Put the path on the host into *spec, which is replaced then, if a tenant in a container has named a file. record: of the
 * device, or NULL: a new one; a path that it has already is one of the host. Call before the policy is checked, which
 * knows paths of the host. Return true; false: there is a reply, or the
 * handler will run again. */
bool client_path_settle(
        struct request *request, const struct device_record *record, struct device_spec **spec);
