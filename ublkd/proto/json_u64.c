/* SPDX-License-Identifier: MIT */
/* Numbers that may pass 2^53, in JSON. */
#include "ublkd/proto/json_u64.h"

#include <errno.h>
#include <stdio.h>

bool json_add_u64(cJSON *object, const char *name, uint64_t value)
{
        char text[24];

        snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
        return cJSON_AddStringToObject(object, name, text);
}

int json_read_u64(const cJSON *item, uint64_t *ret)
{
        uint64_t value = 0;

        if (!cJSON_IsString(item) || !*item->valuestring)
                return -EBADMSG;
        for (const char *c = item->valuestring; *c; c++)
                if (*c < '0' || *c > '9' || __builtin_mul_overflow(value, 10, &value)
                        || __builtin_add_overflow(value, (uint64_t)(*c - '0'), &value))
                        return -EBADMSG;
        *ret = value;
        return 0;
}
