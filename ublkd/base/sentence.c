/* SPDX-License-Identifier: MIT */
/* Texts that are meant for people. */
#include "ublkd/base/sentence.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool sentence_equal(const char *one, const char *other)
{
        return one && other ? strcmp(one, other) == 0 : one == other;
}

const char *full_stop(const char *sentence)
{
        size_t length = strlen(sentence);

        return length > 0 && sentence[length - 1] == '.' ? "" : ".";
}

char *sentence_print(const char *format, ...)
{
        va_list arguments;
        char *text;
        int n;

        va_start(arguments, format);
        n = vasprintf(&text, format, arguments);
        va_end(arguments);
        return n < 0 ? NULL : text;
}
