/* SPDX-License-Identifier: MIT */
/* Text that came from elsewhere, for a terminal or a log. */
#include "ublkd/base/printable.h"

#include <stddef.h>

/* The length of the UTF-8 sequence that `text` begins with; 0: it is none, or a control character. */
static size_t printable_length(const unsigned char *text)
{
        size_t length = *text < 0x80 ? 1 : *text >= 0xf0 ? 4 : *text >= 0xe0 ? 3 : 2;

        if (*text < 0x20 || *text == 0x7f || (*text >= 0x80 && *text < 0xc2) || *text > 0xf4)
                return 0;
        for (size_t i = 1; i < length; i++)
                if ((text[i] & 0xc0) != 0x80)
                        return 0;
        return *text == 0xc2 && text[1] < 0xa0 ? 0 : length; /* C1 controls */
}

void make_printable(char *text)
{
        while (*text) {
                size_t length = printable_length((unsigned char *)text);

                if (length == 0)
                        *text = '?';
                text += length ? length : 1;
        }
}
