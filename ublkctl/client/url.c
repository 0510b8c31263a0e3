/* SPDX-License-Identifier: MIT */
/* Parts of URLs. */
#include "ublkctl/client/url.h"

#include "ublkd/base/cleanup.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

char *url_encode(const char *text)
{
        char *escaped = curl_easy_escape(NULL, text, 0), *encoded = escaped ? strdup(escaped) : NULL;

        curl_free(escaped);
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
