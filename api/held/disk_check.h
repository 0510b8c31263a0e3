/* SPDX-License-Identifier: MIT */
/* Who uses the disk of a request's device: what a handler has to know before it decides to take a disk away.
 *
 * It is asked once, and the request is suspended until the answer is there. Then its handler runs again from
 * the beginning, in the turn in which it acts: what has changed meanwhile (the device, its generation for
 * If-Match) is seen. */
#pragma once

#include "api/http/request.h"

#include "ublkd/disk_users/disk_search.h"

/* Who uses the disk of `record`, which has that number now. NULL: the handler has to leave without a reply;
 * either it will run again, or there is one already (out of memory). Only the answer that was asked for this
 * generation of this device is taken. */
const struct disk_answer *disk_check(struct request *request, const struct device_record *record, int number);
