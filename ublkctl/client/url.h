/* SPDX-License-Identifier: MIT */
/* Parts of URLs. Pure. */
#pragma once

/* RFC 3986: every byte but the unreserved ones as %XX. NULL: memory. The caller frees it. */
char *url_encode(const char *text);
/* `path` (taken over) with "?name=value" or "&name=value"; NULL: memory. */
char *url_add_parameter(char *path, const char *name, const char *value);
