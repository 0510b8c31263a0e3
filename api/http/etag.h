/* SPDX-License-Identifier: MIT */
/* Entity tags (RFC 9110, 8.8.3). Private to api/.
 *
 * The tag of a device is "GENERATION.UID.DIGEST": the generation of its spec, eight digits of its uid, and a
 * digest of the whole answer, status included. "GENERATION" alone names the device as well. The tag of
 * anything else is the digest. */
#pragma once

#include "api/http/request.h"

/* One tag of a header: what stands between the quotation marks. */
struct etag {
        const char *text;
        size_t length;
        bool weak;
};

/* Give the reply the tag of the device `record`, which it shows. */
void etag_set_device(struct request *request, const struct device_record *record);

/* Give the reply the tag of its body. */
void etag_set(struct request *request);

/* Read the tag at the beginning of `text`. Return its length there; 0 when there is none. */
size_t etag_read(const char *text, struct etag *ret);

/* Whether a tag is that of this generation of the device in `record` (a struct device_record, or NULL),
 * whatever its status was. Strongly: and it is not a weak tag. */
bool etag_is_device(const struct etag *tag, const void *record);
bool etag_is_device_strongly(const struct etag *tag, const void *record);

/* Whether a tag is exactly `text` (a string), which has its quotation marks. */
bool etag_is_same(const struct etag *tag, const void *text);
bool etag_is_same_strongly(const struct etag *tag, const void *text);
