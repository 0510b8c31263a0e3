/* SPDX-License-Identifier: MIT */
/* UTF-8, as RFC 3629 has it. */
#include "api/http/utf8.h"

size_t utf8_length(const char *text, size_t size)
{
        const unsigned char *bytes = (const unsigned char *)text;
        size_t length = bytes[0] < 0x80   ? 1
                        : bytes[0] < 0xc2 ? 0
                        : bytes[0] < 0xe0 ? 2
                        : bytes[0] < 0xf0 ? 3
                        : bytes[0] < 0xf5 ? 4
                                          : 0;

        if (length > size)
                return 0;
        for (size_t i = 1; i < length; i++)
                if ((bytes[i] & 0xc0) != 0x80)
                        return 0;
        if ((bytes[0] == 0xe0 && bytes[1] < 0xa0) || (bytes[0] == 0xed && bytes[1] > 0x9f)
                || (bytes[0] == 0xf0 && bytes[1] < 0x90) || (bytes[0] == 0xf4 && bytes[1] > 0x8f))
                return 0;
        return length;
}
