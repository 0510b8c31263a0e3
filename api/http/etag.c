/* SPDX-License-Identifier: MIT */
/* Entity tags. */
#include "api/http/etag.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { UID_DIGITS = 8 };

/* FNV-1a, not cryptographic: a collision only hides the client's own change from itself. */
static uint64_t digest(const char *text)
{
        uint64_t hash = UINT64_C(0xcbf29ce484222325);

        for (; *text; text++)
                hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
        return hash;
}

void etag_set_device(struct request *request, const struct device_record *record)
{
        struct reply *reply = &request->reply;

        if (reply->body)
                snprintf(reply->etag, sizeof(reply->etag), "\"%" PRIu64 ".%.*s.%016" PRIx64 "\"",
                        record->generation, UID_DIGITS, record->uid, digest(reply->body));
}

void etag_set(struct request *request)
{
        struct reply *reply = &request->reply;

        if (reply->body)
                snprintf(reply->etag, sizeof(reply->etag), "\"%016" PRIx64 "\"", digest(reply->body));
}

static bool is_tag_character(char c)
{
        return c == '!' || (c >= '#' && c <= '~'); /* tags of ublkd need no other characters */
}

size_t etag_read(const char *text, struct etag *ret)
{
        size_t prefix = strncmp(text, "W/", 2) == 0 ? 2 : 0, length = 0;

        if (text[prefix] != '"')
                return 0;
        while (is_tag_character(text[prefix + 1 + length]))
                length++;
        if (text[prefix + 1 + length] != '"')
                return 0;
        *ret = (struct etag){.text = text + prefix + 1, .length = length, .weak = prefix > 0};
        return prefix + length + 2;
}

bool etag_is_device(const struct etag *tag, const void *userdata)
{
        const struct device_record *record = userdata;
        char prefix[64];
        size_t generation;

        if (!record)
                return false;
        generation = (size_t)snprintf(prefix, sizeof(prefix), "%" PRIu64, record->generation);
        snprintf(prefix + generation, sizeof(prefix) - generation, ".%.*s.", UID_DIGITS, record->uid);
        if (tag->length == generation)
                return memcmp(tag->text, prefix, generation) == 0;
        return tag->length > strlen(prefix) && memcmp(tag->text, prefix, strlen(prefix)) == 0;
}

bool etag_is_device_strongly(const struct etag *tag, const void *userdata)
{
        return !tag->weak && etag_is_device(tag, userdata);
}

bool etag_is_same(const struct etag *tag, const void *userdata)
{
        const char *etag = userdata;

        return strlen(etag) == tag->length + 2 && memcmp(etag + 1, tag->text, tag->length) == 0;
}

bool etag_is_same_strongly(const struct etag *tag, const void *userdata)
{
        return !tag->weak && etag_is_same(tag, userdata);
}
