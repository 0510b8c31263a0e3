/* SPDX-License-Identifier: MIT */
/* What is wrong with the file of a policy. */
#include "ublkd/policy/policy_fault.h"

#include "ublkd/base/printable.h"
#include "ublkd/base/sentence.h"
#include "ublkd/values/json_locate.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int policy_fault_place(const struct policy_faults *faults, const char *pointer, char **ret)
{
        char *place;

        if (asprintf(&place, "%s:%zu", faults->file->path, json_locate(faults->file->text, pointer)) < 0)
                return -ENOMEM;
        *ret = place;
        return 0;
}

static int print_pointer(const char *pointer, const char *name, int index, char **ret)
{
        char number[16] = "";

        if (index >= 0)
                snprintf(number, sizeof(number), "/%d", index);
        if (asprintf(ret, "%s%s%s%s", pointer, name ? "/" : "", name ? name : "", number) < 0) {
                *ret = NULL;
                return -ENOMEM;
        }
        return 0;
}

/* pointer: the whole one. */
static int _printf_(6, 0) add_line(const struct policy_faults *faults, struct problem_list *problems,
        int error, const char *reason, const char *pointer, const char *format, va_list arguments)
{
        _cleanup_free_ char *place = NULL, *words = NULL, *line = NULL;
        int r = policy_fault_place(faults, pointer, &place);

        if (r < 0)
                return r;
        if (vasprintf(&words, format, arguments) < 0) {
                words = NULL; /* vasprintf(3) leaves it undefined */
                return -ENOMEM;
        }
        line = sentence_print("%s: %s%s%s", place, pointer, *pointer ? ": " : "", words);
        if (!line)
                return -ENOMEM;
        make_printable(line); /* the pointer has names as the file has them */
        return problem_add(problems, error, pointer, reason, "%s", line);
}

int policy_fault_add(struct policy_faults *faults, const char *pointer, const char *name, int index,
        const char *format, ...)
{
        _cleanup_free_ char *whole = NULL;
        va_list arguments;
        int r = print_pointer(pointer, name, index, &whole);

        faults->faulty = true;
        if (r < 0)
                return r;
        va_start(arguments, format);
        r = add_line(faults, faults->problems, EINVAL, "PolicyInvalid", whole, format, arguments);
        va_end(arguments);
        return r;
}

int policy_fault_note(const struct policy_faults *faults, struct problem_list *notes, const char *reason,
        const char *pointer, const char *name, const char *format, ...)
{
        _cleanup_free_ char *whole = NULL;
        va_list arguments;
        int r = print_pointer(pointer, name, -1, &whole);

        if (r < 0)
                return r;
        va_start(arguments, format);
        r = add_line(faults, notes, 0, reason, whole, format, arguments);
        va_end(arguments);
        return r;
}

int policy_fault_add_json(struct policy_faults *faults, const struct json_fault *fault)
{
        faults->faulty = true;
        return problem_add(faults->problems, EINVAL, "", "PolicyInvalid",
                "%s:%zu: the file is not valid JSON, at column %zu: %s; correct it", faults->file->path,
                fault->line, fault->column, fault->what);
}
