/* SPDX-License-Identifier: MIT */
/* Who uses the disk of a request's device: what a handler has to know before it decides to take a disk away.
 *
 * It is asked once, and the request is suspended until the answer is there. Then its handler runs again from
 * the beginning, in the turn in which it acts: what has changed meanwhile (the device, its generation for
 * If-Match) is seen. */
#pragma once

#include "api/http/request.h"

#include "ublkd/disk_users/disk_search.h"

struct disk_check;

/* Who uses the disk of `record`, which has that number now. NULL: the handler has to leave without a reply;
 * either it will run again, or there is one already (out of memory). Only the answer that was asked for this
 * generation of this device is taken. */
const struct disk_answer *disk_check(struct request *request, const struct device_record *record, int number);

/* Whether the request is suspended for an answer. */
bool disk_check_is_pending(const struct request *request);

/* Ends every one without a reply, so that the server can stop. */
void disk_check_abandon_all(struct api *api);

/* NULL is fine. Returns NULL. */
struct disk_check *disk_check_free(struct disk_check *check);
