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
        int count, of_workers;
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

/* Return whether the name is in the table or has a number, and its reason. */
static bool find(const char *name, enum condition_reason *ret)
{
        for (int i = 0; i < (int)_REASON_MAX + unknown.count; i++)
                if (strcmp(reason_to_string((enum condition_reason)i), name) == 0) {
                        *ret = (enum condition_reason)i;
                        return true;
                }
        return false;
}

static enum condition_reason keep_unknown(const char *name)
{
        if (unknown.count == REASONS_UNKNOWN_MAX || !is_name(name))
                return REASON_OTHER;
        unknown.names[unknown.count] = strdup(name);
        if (!unknown.names[unknown.count])
                return REASON_OTHER;
        return (enum condition_reason)((int)_REASON_MAX + unknown.count++);
}

enum condition_reason reason_from_string(const char *name)
{
        enum condition_reason reason;

        return find(name, &reason) ? reason : keep_unknown(name);
}

enum condition_reason reason_from_worker(const char *name, unsigned *kept)
{
        enum condition_reason reason;

        if (find(name, &reason))
                return reason;
        if (!kept || *kept >= REASONS_OF_A_DISK || unknown.of_workers >= REASONS_OF_WORKERS)
                return REASON_OTHER;
        reason = keep_unknown(name);
        if (reason != REASON_OTHER) {
                (*kept)++;
                unknown.of_workers++;
        }
        return reason;
}
