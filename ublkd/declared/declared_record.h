/* SPDX-License-Identifier: MIT */
/* What the store has of a device, as the plan sees it. */
#pragma once

#include "ublkd/declared/declared_plan.h"
#include "ublkd/store/device_store.h"

/* Return the kind of the record; NULL: there is none. */
enum declared_record declared_record_kind(const struct device_record *record);
/* Return whether the device `name` is from the file `path`. store: a struct device_store. */
bool declared_record_is_owner(const void *store, const char *name, const char *path);
/* Return whether a device stays whose file is gone. */
bool declared_record_any_gone(const struct device_store *store);
