/* SPDX-License-Identifier: MIT */
/* Check what a tenant asks for: only its own devices, within what the policy gives it. */
#pragma once

#include "api/http/request.h"

#include "ublkd/filesystems/filesystem_rule.h"
#include "ublkd/store/device_store.h"

/* Return whether the client may change the device, which it sees; else it has replied. */
bool may_change(struct request *request, const struct device_record *record);

/* Return whether the client may have a file system made, mounted or delivered, by its rule; else it has replied. *ret: the users with
 * whom it shares its part of the room for that; administrators have no limit. */
bool may_have_mounts(struct request *request, struct filesystem_account *ret);

/* Return whether the client may store `spec` as the device of that name (`record`; NULL: a new one), and set the tenant of
 * the condition, which stays valid as long as the request; else it has replied. The device may belong to others: their
 * names are not the tenant's to have, and the reply does not say why. The usage of a tenant is counted now, so the spec must
 * be stored before anything else is. Administrators may store any; see spares_tenants(). */
bool may_put(struct request *request, const struct device_record *record, const struct device_spec *spec,
        struct put_condition *condition);

/* Return whether `spec` of an administrator takes no name of a tenant, and leaves the device of a tenant what ublkd needs to take
 * it away; else it has replied. Call after the preconditions, which count before what is wrong with a spec. True for tenants:
 * may_put() has checked theirs. record: as for may_put(). */
bool spares_tenants(
        struct request *request, const struct device_record *record, const struct device_spec *spec);
