/* SPDX-License-Identifier: MIT */
/* Parts of URLs. */
#include "ublkctl/client/url.h"

#include "ublkd/base/cleanup.h"

#include <stdio.h>
#include <string.h>

static const char unreserved[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

char *url_encode(const char *text)
{
        char *encoded = malloc(3 * strlen(text) + 1), *next = encoded;

        if (!encoded)
                return NULL;
        for (; *text; text++)
                if (strchr(unreserved, *text))
                        *next++ = *text;
                else
                        next += sprintf(next, "%%%02X", (unsigned char)*text);
        *next = '\0';
        return encoded;
}

char *url_add_parameter(char *path, const char *name, const char *value)
{
        _cleanup_free_ char *before = path;
        _cleanup_free_ char *encoded = url_encode(value);
        char *longer;

        if (!encoded
                || asprintf(&longer, "%s%c%s=%s", before, strchr(before, '?') ? '&' : '?', name, encoded) < 0)
                return NULL;
        return longer;
}
