/* SPDX-License-Identifier: MIT */
/* What a rule has against a spec, as it is found. */
#include "ublkd/policy/policy_verdict.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static void _printf_(5, 0) add(struct policy_verdict *verdict, int error, const char *pointer,
        const char *kind, const char *format, va_list arguments)
{
        _cleanup_free_ char *rest = NULL;
        bool missing = error == EINVAL;
        int r = vasprintf(&rest, format, arguments);

        if (r < 0)
                rest = NULL; /* vasprintf(3) leaves it undefined */
        else
                r = problem_add(verdict->problems, error, pointer, kind, "The rule %s of the policy %s%s",
                        verdict->rule->options.name, missing ? "needs more than this spec has; " : "", rest);
        if (r < 0)
                verdict->error = -ENOMEM;
        else if (verdict->error == 0)
                verdict->error = -EPERM;
}

void policy_forbid(struct policy_verdict *verdict, const char *pointer, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        add(verdict, EPERM, pointer, "PolicyForbids", format, arguments);
        va_end(arguments);
}

void policy_exceed(struct policy_verdict *verdict, const char *pointer, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        add(verdict, EDQUOT, pointer, "PolicyExceeded", format, arguments);
        va_end(arguments);
}

void policy_require(struct policy_verdict *verdict, const char *pointer, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        add(verdict, EINVAL, pointer, "PolicyRequires", format, arguments);
        va_end(arguments);
}
