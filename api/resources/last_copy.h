/* SPDX-License-Identifier: MIT */
/* A disk keeps its store when its path leads elsewhere, so the disk may be the only way to the data. ublkd
 * then does not remove the disk, unless the client gives the data up. */
#pragma once

#include "api/http/request.h"

/* Return whether only the disk of the device has its data: the file behind it has no name any more. */
bool is_last_copy(const struct request *request, const struct device_record *record);

/* Return true if the data stay reachable without the disk, or the client gives them up; else there is a
 * reply, which names the users of the disk, or the handler runs again. `what` begins its sentence. */
bool last_copy_may_go(struct request *request, const struct device_record *record, const char *what);

/* Return true if a new disk of `spec` has the store of the old disk, or the spec names another path; else
 * there is a reply, or the handler runs again. Also checks a store without a name, unless the client gives its data up. */
bool new_disk_keeps_store(struct request *request, const struct device_record *record,
        const struct device_spec *spec, const char *what);
