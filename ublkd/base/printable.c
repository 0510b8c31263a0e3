/* SPDX-License-Identifier: MIT */
/* Text that came from elsewhere, for a terminal or a log. */
#include "ublkd/base/printable.h"

#include "ublkd/base/utf8.h"

#include <string.h>

/* Whether a sequence of UTF-8 breaks a line, or turns the direction of the text around it: U+061C, U+200E, U+200F,
 * U+2028 to U+202E, U+2066 to U+2069. */
static bool is_layout(const char *text)
{
        unsigned char third;

        if (strncmp(text, "\xd8\x9c", 2) == 0)
                return true;
        if (strncmp(text, "\xe2\x80", 2) != 0 && strncmp(text, "\xe2\x81", 2) != 0)
                return false;
        third = (unsigned char)text[2];
        if (text[1] == '\x81')
                return third >= 0xa6 && third <= 0xa9;
        return (third >= 0xa8 && third <= 0xae) || third == 0x8e || third == 0x8f;
}

/* Whether a sequence of UTF-8 is a control character. */
static bool is_control(const char *text)
{
        unsigned char first = (unsigned char)text[0], second = (unsigned char)text[1];

        return first < 0x20 || first == 0x7f || (first == 0xc2 && second < 0xa0)
               || is_layout(text); /* ASCII, C1 */
}

size_t printable_length(const char *text, size_t left)
{
        return is_control(text) ? 0 : utf8_length(text, left);
}

void make_printable(char *text)
{
        size_t left = strlen(text);

        while (left > 0) {
                size_t length = printable_length(text, left);

                if (length == 0) {
                        *text = '?';
                        length = 1;
                }
                text += length;
                left -= length;
        }
}
