/* SPDX-License-Identifier: MIT */
/* One line about all devices. */
#include "ublkd/host/service_summary.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NAMED_MAX = 3 };

_printf_(2, 3) static void add(char text[static SERVICE_SUMMARY_SIZE], const char *format, ...)
{
        size_t used = strlen(text);
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(text + used, SERVICE_SUMMARY_SIZE - used, format, arguments);
        va_end(arguments);
}

static const char *plural(size_t count)
{
        return count == 1 ? "" : "s";
}

/* Return the reason of the first condition that is False; NULL: there is none. */
static const char *false_condition(const struct device_conditions *conditions)
{
        for (size_t i = 0; i < _CONDITION_MAX; i++)
                if (conditions->of[i].status == CONDITION_FALSE)
                        return reason_to_string(conditions->of[i].reason);
        return NULL;
}

/* Return what is wrong with a device; NULL: nothing. A device that is on its way to what the spec wants is well. */
static const char *trouble_of(const struct device_status *status)
{
        static const bool well[_PHASE_MAX] = {
                [PHASE_PENDING] = true,
                [PHASE_STARTING] = true,
                [PHASE_LIVE] = true,
                [PHASE_RECOVERING] = true,
                [PHASE_STOPPING] = true,
                [PHASE_DISABLED] = true,
        };

        return well[status->phase] ? false_condition(&status->conditions) : device_status_reason(status);
}

void service_summary(
        const struct device_store *store, size_t host_problems, char ret[static SERVICE_SUMMARY_SIZE])
{
        size_t live = 0, troubled = 0, count = device_store_count(store);

        DEVICE_STORE_FOREACH (record, store)
                live += record->status.phase == PHASE_LIVE;
        ret[0] = '\0';
        add(ret, "%zu device%s, %zu Live", count, plural(count), live);
        DEVICE_STORE_FOREACH (record, store) {
                const char *trouble = trouble_of(&record->status);

                if (trouble && ++troubled <= NAMED_MAX)
                        add(ret, "; %s: %s", record->name, trouble);
        }
        if (troubled > NAMED_MAX)
                add(ret, "; %zu more with problems", troubled - NAMED_MAX);
        if (host_problems > 0)
                add(ret, "; %zu problem%s of the host, see 'ublkctl host'", host_problems,
                        plural(host_problems));
}
