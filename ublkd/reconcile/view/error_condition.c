/* SPDX-License-Identifier: MIT */
/* Reports the requests of a disk that failed. */
#include "ublkd/reconcile/view/error_condition.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/values/json_time.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_USEC (ERRORS_SHOWN_SECONDS * UINT64_C(1000000))

/* In the order of their weight: the reason of the condition is that of the first one that failed. */
static const struct {
        enum stats_op op;
        enum condition_reason reason;
        const char *one, *many;
} kinds[] = {
        {STATS_WRITE,        REASON_WRITE_FAILED,   "A write",                "writes"                 },
        {STATS_WRITE_ZEROES, REASON_WRITE_FAILED,   "A write of zeroes",      "writes of zeroes"       },
        {STATS_READ,         REASON_READ_FAILED,    "A read",                 "reads"                  },
        {STATS_FLUSH,        REASON_REQUEST_FAILED, "A flush",                "flushes"                },
        {STATS_OTHER,        REASON_REQUEST_FAILED, "A request of this kind", "requests of other kinds"},
        {STATS_DISCARD,      REASON_DISCARD_FAILED, "A discard",              "discards"               },
};
_Static_assert(ARRAY_SIZE(kinds) == _STATS_OP_MAX, "every operation has a row");

static size_t kind_of(enum stats_op op)
{
        size_t i = 0;

        while (i + 1 < ARRAY_SIZE(kinds) && kinds[i].op != op)
                i++;
        return i;
}

const char *error_subject(enum stats_op op)
{
        return kinds[kind_of(op)].one;
}

enum condition_reason error_reason(enum stats_op op)
{
        return kinds[kind_of(op)].reason;
}

enum { PLACE_TEXT_SIZE = 80 };

static void format_place(
        enum stats_op op, const struct error_report *report, char text[static PLACE_TEXT_SIZE])
{
        text[0] = '\0';
        if (io_error_has_place(op))
                snprintf(text, PLACE_TEXT_SIZE, " of %u bytes at byte %llu", (unsigned)report->length,
                        (unsigned long long)report->offset);
}

int error_explain(enum stats_op op, uint64_t count, const struct error_report *report, char **ret)
{
        size_t kind = kind_of(op);
        char place[PLACE_TEXT_SIZE], time[TIME_TEXT_SIZE];
        int n;

        format_place(op, report, place);
        if (!time_format(report->at, time))
                snprintf(time, sizeof(time), "an unknown time");
        if (count == 1)
                n = asprintf(ret, "%s%s failed at %s: %s (%s).", kinds[kind].one, place, time,
                        strerror(report->error), io_error_name(report->error));
        else
                n = asprintf(ret, "%llu %s failed, the last one%s at %s: %s (%s).", (unsigned long long)count,
                        kinds[kind].many, place, time, strerror(report->error), io_error_name(report->error));
        if (n >= 0)
                return 0;
        *ret = NULL;
        return -ENOMEM;
}

static bool is_shown(const struct error_report *report, uint64_t now)
{
        return report->count > 0 && report->at + SHOWN_USEC > now;
}

/* Append the sentence to *text, which it may replace. */
static int append(char **text, const char *sentence)
{
        _cleanup_free_ char *before = *text;

        if (asprintf(text, "%s%s%s", before ? before : "", before ? " " : "", sentence) >= 0)
                return 0;
        *text = NULL;
        return -ENOMEM;
}

int error_condition(const struct io_errors *errors, uint64_t now, struct device_condition *ret)
{
        enum condition_reason reason = REASON_NONE;
        _cleanup_free_ char *text = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                const struct error_report *report = &errors->of[kinds[i].op];
                _cleanup_free_ char *sentence = NULL;

                if (!is_shown(report, now))
                        continue;
                if (reason == REASON_NONE)
                        reason = kinds[i].reason;
                if (error_explain(kinds[i].op, report->count, report, &sentence) < 0
                        || append(&text, sentence) < 0)
                        return -ENOMEM;
        }
        return text ? device_condition_set(ret, CONDITION_FALSE, reason, "%s", text) : 0;
}

uint64_t error_condition_end(const struct io_errors *errors, uint64_t now)
{
        uint64_t last = 0;

        for (size_t i = 0; i < _STATS_OP_MAX; i++)
                if (is_shown(&errors->of[i], now) && errors->of[i].at > last)
                        last = errors->of[i].at;
        return last > 0 ? last + SHOWN_USEC : 0;
}
