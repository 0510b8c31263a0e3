/* SPDX-License-Identifier: MIT */
/* Parse the Accept header (RFC 9110, section 12.5.1). */
#include "api/http/accept.h"

#include "ublkd/base/cleanup.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { QUALITY_MAX = 1000, QUALITY_DIGITS = 3 };

/* From the widest range to the narrowest. The narrowest range that covers the type decides. */
enum fit { FIT_NONE, FIT_ANY, FIT_FAMILY, FIT_UNDERNEATH, FIT_EXACT };

static const char blanks[] = " \t";

bool media_type_is(const char *text, size_t size, const char *type)
{
        size_t length = strcspn(text, ";,");

        length = length < size ? length : size;
        while (length > 0 && strchr(blanks, text[length - 1]))
                length--;
        return length == strlen(type) && strncasecmp(text, type, length) == 0;
}

/* A range for JSON covers every type that is JSON underneath; a range for problems covers JSON that is not a
 * problem. */
static enum fit fit_of(const char *range, size_t size, const char *type)
{
        size_t slash = strcspn(type, "/") + 1, length = strlen(type);
        bool json = length >= 4 && strcmp(type + length - 4, "json") == 0;
        char family[64];

        snprintf(family, sizeof(family), "%.*s*", (int)slash, type);
        if (media_type_is(range, size, type))
                return FIT_EXACT;
        if (json
                && (media_type_is(range, size, "application/json")
                        || media_type_is(range, size, "application/problem+json")))
                return FIT_UNDERNEATH;
        if (media_type_is(range, size, family))
                return FIT_FAMILY;
        return media_type_is(range, size, "*/*") ? FIT_ANY : FIT_NONE;
}

/* Return the weight in thousandths: 250 for "0.25". An invalid weight counts as the greatest, for the client
 * does accept the type. */
static unsigned quality_of_text(const char *text)
{
        unsigned quality, unit = QUALITY_MAX / 10;

        if (*text != '0')
                return QUALITY_MAX;
        quality = 0;
        text += text[1] == '.' ? 2 : 1;
        for (unsigned i = 0; i < QUALITY_DIGITS && *text >= '0' && *text <= '9'; i++, text++, unit /= 10)
                quality += (unsigned)(*text - '0') * unit;
        return quality;
}

/* Return the weight among the parameters of a range, in thousandths. */
static unsigned quality_of(const char *range, size_t size)
{
        const char *end = range + size;

        for (const char *at = memchr(range, ';', size); at; at = memchr(at, ';', (size_t)(end - at))) {
                at++;
                at += strspn(at, blanks);
                if (strncasecmp(at, "q=", 2) == 0)
                        return quality_of_text(at + 2);
        }
        return QUALITY_MAX;
}

void accept_read(struct accept *accept, const char *line, const char *type)
{
        accept->given = accept->given || *line;
        for (const char *range = line; *range; range += *range == ',') {
                enum fit fit;
                unsigned quality;
                size_t size;

                range += strspn(range, " \t,");
                size = strcspn(range, ",");
                fit = fit_of(range, size, type);
                quality = quality_of(range, size);
                if (fit > accept->fit || (fit == accept->fit && quality > accept->quality))
                        accept->quality = quality;
                if (fit > accept->fit)
                        accept->fit = fit;
                range += size;
        }
}

unsigned accept_quality(const struct accept *accept)
{
        if (!accept->given)
                return QUALITY_MAX;
        return accept->fit != FIT_NONE ? accept->quality : 0;
}
