/* SPDX-License-Identifier: MIT */
/* Parts of URLs. Pure. */
#pragma once

/* Return `text` with every byte but the unreserved ones (RFC 3986) as %XX; the caller frees it. NULL on
 * ENOMEM. */
char *url_encode(const char *text);
/* Return `path` (taken over) with "?name=value" or "&name=value" appended; NULL on ENOMEM. */
char *url_add_parameter(char *path, const char *name, const char *value);
