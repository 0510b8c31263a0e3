/* SPDX-License-Identifier: MIT */
/* Text that came from elsewhere, for a terminal or a log. */
#include "ublkd/base/printable.h"

#include "ublkd/base/utf8.h"

#include <string.h>

/* Whether a sequence of UTF-8 is a control character. */
static bool is_control(const char *text)
{
        unsigned char first = (unsigned char)text[0], second = (unsigned char)text[1];

        return first < 0x20 || first == 0x7f || (first == 0xc2 && second < 0xa0); /* ASCII, C1 */
}

void make_printable(char *text)
{
        size_t left = strlen(text);

        while (left > 0) {
                size_t length = is_control(text) ? 0 : utf8_length(text, left);

                if (length == 0) {
                        *text = '?';
                        length = 1;
                }
                text += length;
                left -= length;
        }
}
