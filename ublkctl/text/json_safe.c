/* SPDX-License-Identifier: MIT */
/* Print JSON to a terminal. */
#include "ublkctl/text/json_safe.h"

#include "ublkd/base/printable.h"
#include "ublkd/base/utf8.h"

#include <stdbool.h>
#include <string.h>

enum { REPLACEMENT = 0xfffd };

/* Characters of its layout are outside of strings: in strings cJSON escapes them. */
static bool is_layout_of_json(char character)
{
        return character == '\n' || character == '\t';
}

/* Print the character that is not printable, and return its length. */
static size_t print_escaped(FILE *file, const char *text, size_t left)
{
        uint32_t point = REPLACEMENT;
        size_t length = utf8_decode(text, left, &point);

        if (point < 0x10000)
                fprintf(file, "\\u%04x", point);
        else
                fprintf(file, "\\u%04x\\u%04x", 0xd7c0 + (point >> 10), 0xdc00 + (point & 0x3ff));
        return length > 0 ? length : 1;
}

void json_print_safely(FILE *file, const char *json)
{
        size_t left = strlen(json), length;

        for (const char *at = json; left > 0; at += length, left -= length) {
                length = is_layout_of_json(*at) ? 1 : printable_length(at, left);
                if (length == 0)
                        length = print_escaped(file, at, left);
                else if (*at == '\t')
                        fputs(at > json && at[-1] == ':' ? " " : "    ", file);
                else
                        fwrite(at, 1, length, file);
        }
        fputc('\n', file);
}
