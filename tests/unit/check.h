/* SPDX-License-Identifier: MIT */
/* Assertions that go on after a failure: each prints where and what, and main() ends in check_report().
 * A test that cannot run here returns CHECK_SKIP. */
#pragma once

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { CHECK_SKIP = 77 };

/* Weak: the files of one test share it, so that a failure in a helper's file counts as well. */
__attribute__((weak)) unsigned check_failures;

static inline bool check_condition(bool good, const char *text, const char *file, int line)
{
        if (!good) {
                fprintf(stderr, "%s:%d: not true: %s\n", file, line, text);
                check_failures++;
        }
        return good;
}

static inline bool check_integers(intmax_t got, intmax_t wanted, const char *text, const char *file, int line)
{
        if (got != wanted) {
                fprintf(stderr, "%s:%d: %s: got %jd, wanted %jd\n", file, line, text, got, wanted);
                check_failures++;
        }
        return got == wanted;
}

static inline bool check_strings(
        const char *got, const char *wanted, const char *text, const char *file, int line)
{
        bool same = got && wanted ? strcmp(got, wanted) == 0 : got == wanted;

        if (!same) {
                fprintf(stderr, "%s:%d: %s: got \"%s\", wanted \"%s\"\n", file, line, text,
                        got ? got : "(null)", wanted ? wanted : "(null)");
                check_failures++;
        }
        return same;
}

/* Each is an expression, true when the check held: `if (!CHECK(pointer)) return;`. What was got comes first.
 */
#define CHECK(condition) check_condition((condition) ? true : false, #condition, __FILE__, __LINE__)
#define CHECK_INT(got, wanted) check_integers((intmax_t)(got), (intmax_t)(wanted), #got, __FILE__, __LINE__)
#define CHECK_STR(got, wanted) check_strings((got), (wanted), #got, __FILE__, __LINE__)

/* The exit status of the test. */
static inline int check_report(void)
{
        if (check_failures > 0)
                fprintf(stderr, "%u checks failed\n", check_failures);
        return check_failures > 0 ? 1 : 0;
}
