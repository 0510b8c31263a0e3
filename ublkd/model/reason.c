/* SPDX-License-Identifier: MIT */
/* Reasons and their names. Names that are not in the table get a number here; normally there are none. */
#include "ublkd/model/reason.h"

#include "ublkd/model/reason_table.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static struct {
        char *names[REASONS_UNKNOWN_MAX];
        int count;
} unknown;

const struct reason_info *reason_info(enum condition_reason reason)
{
        return &reason_table[reason < _REASON_MAX ? reason : REASON_OTHER];
}

const char *reason_to_string(enum condition_reason reason)
{
        int index = (int)reason - (int)_REASON_MAX;

        if (index < 0)
                return reason_table[reason].name;
        assert(index < unknown.count);
        return unknown.names[index];
}

static bool is_name(const char *text)
{
        size_t length = strlen(text);

        for (size_t i = 0; i < length; i++)
                if (!isalnum((unsigned char)text[i]))
                        return false;
        return length < REASON_NAME_MAX;
}

static enum condition_reason keep_unknown(const char *name)
{
        for (int i = 0; i < unknown.count; i++)
                if (strcmp(unknown.names[i], name) == 0)
                        return (enum condition_reason)((int)_REASON_MAX + i);
        if (unknown.count == REASONS_UNKNOWN_MAX || !is_name(name))
                return REASON_OTHER;
        unknown.names[unknown.count] = strdup(name);
        if (!unknown.names[unknown.count])
                return REASON_OTHER;
        return (enum condition_reason)((int)_REASON_MAX + unknown.count++);
}

enum condition_reason reason_from_string(const char *name)
{
        for (int i = 0; i < (int)_REASON_MAX; i++)
                if (strcmp(reason_table[i].name, name) == 0)
                        return (enum condition_reason)i;
        return keep_unknown(name);
}
