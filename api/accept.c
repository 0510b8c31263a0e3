/* The Accept header. */
#include "api/accept.h"

#include "ublkd/base/cleanup.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

bool media_type_is(const char *text, size_t size, const char *type)
{
        size_t length = strcspn(text, ";,");

        length = length < size ? length : size;
        while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
                length--;
        return length == strlen(type) && strncasecmp(text, type, length) == 0;
}

/* Whether the `size` bytes of one range of an Accept header have room for `type`. Who takes JSON takes what
 * is JSON underneath, and who takes problems takes what is none. */
static bool range_has(const char *range, size_t size, const char *type)
{
        size_t slash = strcspn(type, "/") + 1, length = strlen(type);
        bool json = length >= 4 && strcmp(type + length - 4, "json") == 0;
        char any[64];

        snprintf(any, sizeof(any), "%.*s*", (int)slash, type);
        return media_type_is(range, size, "*/*") || media_type_is(range, size, any)
               || media_type_is(range, size, type)
               || (json
                       && (media_type_is(range, size, "application/json")
                               || media_type_is(range, size, "application/problem+json")));
}

bool accept_allows(const char *accept, const char *type)
{
        if (!accept || !*accept)
                return true;
        for (const char *item = accept; *item; item += *item == ',') {
                size_t length;
                const char *weight;

                item += strspn(item, " \t,");
                length = strcspn(item, ",");
                weight = strcasestr(item, ";q=0");
                if (!(weight && weight < item + length
                            && strspn(weight + 3, "0.") == strcspn(weight + 3, ", ;"))
                        && range_has(item, length, type))
                        return true;
                item += length;
        }
        return false;
}
