/* SPDX-License-Identifier: MIT */
/* Refuse to shrink a disk without --allow-shrink, because that cuts off everything beyond its new end. */
#include "ublkctl/verbs/change/shrink.h"

#include "ublkctl/text/amounts.h"
#include "ublkctl/text/json_path.h"

#include "ublkd/values/quantity.h"

/* Return bytes; 0: unknown. The daemon refuses an invalid size. */
static uint64_t bytes_of(const cJSON *size)
{
        uint64_t bytes = 0;

        if (cJSON_IsNumber(size) && size->valuedouble > 0 && size->valuedouble < 0x1p63)
                return (uint64_t)size->valuedouble;
        if (cJSON_IsString(size) && parse_bytes(size->valuestring, &bytes) >= 0)
                return bytes;
        return 0;
}

bool shrink_is_wanted(const cJSON *device, const cJSON *size, uint64_t *ret_from, uint64_t *ret_to)
{
        uint64_t from = bytes_of(json_find(device, "status.size")), to = bytes_of(size);

        if (from == 0) /* no disk now: the one that it had and will have again */
                from = bytes_of(json_find(device, "spec.size"));
        if (to == 0 || from <= to)
                return false;
        *ret_from = from;
        *ret_to = to;
        return true;
}

enum exit_status check_shrink(
        const struct context *context, const char *name, const cJSON *device, const cJSON *size)
{
        char old[AMOUNT_TEXT_SIZE], new[AMOUNT_TEXT_SIZE];
        uint64_t from, to;

        if (context->settings->allow_shrink || !shrink_is_wanted(device, size, &from, &to))
                return STATUS_OK;
        format_bytes((double)from, old);
        format_bytes((double)to, new);
        complain(name,
                "The disk would shrink to %s (%llu bytes) from %s, and lose everything beyond; shrink what "
                "is on it first, then repeat with --allow-shrink. Nothing was changed.",
                new, (unsigned long long)to, old);
        return STATUS_REFUSED;
}
