/* SPDX-License-Identifier: MIT */
/* What a client sees of the devices: all of them, or, if it is a tenant that may not read, its own and nothing of others,
 * as if these did not exist. Private to api/. */
#pragma once

#include "api/http/request.h"

#include "ublkd/model/device_event.h"

bool view_sees_all(const struct request *request);

/* Return who reads the messages of the reply. */
enum reader view_reader(const struct request *request);

/* Return whether the client, or polkit for it, has the right to change all devices. */
bool view_manages_all(const struct request *request);

/* Return whether the client sees the device, or the event. */
bool view_has(const struct request *request, const struct device_record *record);
bool view_has_event(const struct request *request, const struct device_event *event);

/* Return the highest revision that was compacted away of the events that the client sees. */
uint64_t view_compacted(const struct request *request);

/* Return the first device after `name` (NULL: the first) in alphabetical order that the client sees, or NULL at the end. The
 * store owns it. What it takes does not depend on the devices that the client does not see. */
const struct device_record *view_next(const struct request *request, const char *name);
/* Return the next one after `record`, which the client sees, without a search. */
const struct device_record *view_after(const struct request *request, const struct device_record *record);

/* Return the device with that name if the client sees it, else NULL. The store owns it. */
const struct device_record *view_find(const struct request *request, const char *name);

/* Return whether the client may change the device, which it sees. */
bool view_may_change(const struct request *request, const struct device_record *record);
