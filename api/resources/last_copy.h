/* SPDX-License-Identifier: MIT */
/* A disk keeps its store when its path leads elsewhere, so the disk may be all that still reaches the data.
 * It is not taken away as long as that is so, unless the client says that the data may go. */
#pragma once

#include "api/http/request.h"

/* Whether only the disk of the device has its data: the file that it is served from has no name any more. */
bool is_last_copy(const struct request *request, const struct device_record *record);

/* True when the data stay reachable without the disk, or the client gives them up; else there is a reply.
 * `what` begins its sentence. */
bool last_copy_may_go(struct request *request, const struct device_record *record, const char *what);

/* True when a new disk of `spec` is on the store of the old one, or the spec names another path; else there
 * is a reply. For a disk without a name left as well, unless the client gives its data up. */
bool new_disk_keeps_store(struct request *request, const struct device_record *record,
        const struct device_spec *spec, const char *what);
