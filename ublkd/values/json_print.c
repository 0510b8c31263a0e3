/* SPDX-License-Identifier: MIT */
/* cJSON writes numbers with %1.15g where those digits are enough, which gives an exponent from 1e15 on. */
#include "ublkd/values/json_print.h"

#include "ublkd/base/cleanup.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double exact_max = 9007199254740992.0; /* 2^53 */
static const double exponent_min = 1e15;

enum { DIGITS_SIZE = 32 };

static bool gets_exponent(const cJSON *item)
{
        double size = fabs(item->valuedouble);

        return cJSON_IsNumber(item) && size >= exponent_min && size <= exact_max
               && trunc(item->valuedouble) == item->valuedouble;
}

static bool any_gets_exponent(const cJSON *value)
{
        const cJSON *item;

        if (gets_exponent(value))
                return true;
        cJSON_ArrayForEach (item, value)
                if (any_gets_exponent(item))
                        return true;
        return false;
}

/* Makes the number text that is printed as it is. */
static bool spell_out(cJSON *item)
{
        char digits[DIGITS_SIZE];

        snprintf(digits, sizeof(digits), "%.0f", item->valuedouble);
        item->valuestring = strdup(digits);
        item->type = cJSON_Raw;
        return item->valuestring;
}

static bool spell_out_all(cJSON *value)
{
        cJSON *item;

        if (gets_exponent(value))
                return spell_out(value);
        cJSON_ArrayForEach (item, value)
                if (!spell_out_all(item))
                        return false;
        return true;
}

static char *print(const cJSON *value, char *(*printer)(const cJSON *value))
{
        cJSON *copy;
        char *text;

        if (!value || !any_gets_exponent(value))
                return printer(value);
        copy = cJSON_Duplicate(value, true);
        text = copy && spell_out_all(copy) ? printer(copy) : NULL;
        cJSON_Delete(copy);
        return text;
}

char *json_print(const cJSON *value)
{
        return print(value, cJSON_PrintUnformatted);
}

char *json_print_indented(const cJSON *value)
{
        return print(value, cJSON_Print);
}

bool json_add_integer(cJSON *object, const char *name, uint64_t value)
{
        char digits[DIGITS_SIZE];

        if (value <= UINT64_C(1) << 53)
                return cJSON_AddNumberToObject(object, name, (double)value);
        snprintf(digits, sizeof(digits), "%" PRIu64, value);
        return cJSON_AddRawToObject(object, name, digits);
}

bool json_add_text(cJSON *object, const char *name, const char *text)
{
        return (text ? cJSON_AddStringToObject(object, name, text) : cJSON_AddNullToObject(object, name))
               != NULL;
}
