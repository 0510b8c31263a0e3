/* SPDX-License-Identifier: MIT */
/* Build texts in memory. */
#include "ublkctl/text/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool text_append(struct text *text, const char *bytes, size_t size, size_t size_max)
{
        if (size > size_max - text->size)
                return false;
        if (text->size + size + 1 > text->capacity) {
                size_t capacity = (text->size + size + 1) * 2;
                char *more = realloc(text->bytes, capacity);

                if (!more)
                        return false;
                text->bytes = more;
                text->capacity = capacity;
        }
        memcpy(text->bytes + text->size, bytes, size);
        text->size += size;
        text->bytes[text->size] = '\0';
        return true;
}

char *text_format(const char *format, va_list arguments)
{
        char *text;

        return vasprintf(&text, format, arguments) < 0 ? NULL : text;
}
