/* SPDX-License-Identifier: MIT */
/* Ask for the openers of the disk of a request's device, which a handler must know before it removes the
 * disk.
 *
 * A request asks once, and is suspended until the answer arrives. Then its handler runs again from its
 * beginning, and acts in the same turn of the loop. So it sees what has changed meanwhile: the device, its
 * generation for If-Match. */
#pragma once

#include "api/http/request.h"

#include "ublkd/disk_users/disk_search.h"

/* Return the openers of the disk of `record`, whose number is `number`; the request owns the answer. NULL:
 * the handler returns without a reply, because it will run again or a reply is set (out of memory). An answer
 * for another generation of the device does not count. */
const struct disk_answer *disk_check(struct request *request, const struct device_record *record, int number);
/* The same of the disk that the device has now; DISK_UNUSED with number -1 if it has none. */
const struct disk_answer *disk_check_device(struct request *request, const struct device_record *record);
/* Return what the client may read of the answer's text, as new memory; NULL on ENOMEM. The text of an answer of disk_check() is
 * that already. */
char *disk_answer_for(const struct request *request, const struct disk_answer *answer);
