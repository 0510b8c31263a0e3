/* SPDX-License-Identifier: MIT */
/* Entity tags (RFC 9110, 8.8.3). Private to api/.
 *
 * The tag of a device is "GENERATION.UID.DIGEST": the generation of its spec, eight digits of its uid, and a
 * digest of the whole answer, status included. The tag "GENERATION" alone matches the device too. The tag of
 * any other resource is the digest. */
#pragma once

#include "api/http/request.h"

/* One tag of a header: the text between the quotation marks. Points into the header. */
struct etag {
        const char *text;
        size_t length;
        bool weak;
};

/* Set the tag of a reply that shows the device `record`. */
void etag_set_device(struct request *request, const struct device_record *record);

/* Set the tag of a reply from its body. */
void etag_set(struct request *request);

/* Read the tag at the beginning of `text`. Return how many bytes it takes there; 0: no tag. */
size_t etag_read(const char *text, struct etag *ret);

/* Return whether a tag matches the present generation of the device in `record` (a struct device_record, or
 * NULL), with any status. Strongly: a weak tag never matches. */
bool etag_is_device(const struct etag *tag, const void *record);
bool etag_is_device_strongly(const struct etag *tag, const void *record);

/* Return whether a tag equals `text` (a string with its quotation marks). Strongly: a weak tag never
 * matches. */
bool etag_is_same(const struct etag *tag, const void *text);
bool etag_is_same_strongly(const struct etag *tag, const void *text);
