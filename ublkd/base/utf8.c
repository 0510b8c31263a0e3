/* SPDX-License-Identifier: MIT */
/* UTF-8, as RFC 3629 has it. */
#include "ublkd/base/utf8.h"

#include <string.h>

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

size_t utf8_decode(const char *text, size_t size, uint32_t *ret)
{
        static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07}; /* by the length */
        const unsigned char *bytes = (const unsigned char *)text;
        size_t length = utf8_length(text, size);
        uint32_t point = bytes[0] & first_bits[length];

        for (size_t i = 1; i < length; i++)
                point = point << 6 | (bytes[i] & 0x3fu);
        if (length > 0)
                *ret = point;
        return length;
}

bool utf8_is_valid(const char *text, size_t size)
{
        for (size_t length; size > 0; text += length, size -= length) {
                length = utf8_length(text, size);
                if (length == 0)
                        return false;
        }
        return true;
}

size_t utf8_count(const char *text)
{
        size_t count = 0;

        for (; *text; text++)
                count += !utf8_is_continuation(*text);
        return count;
}

void utf8_repair(char *text)
{
        size_t size = strlen(text);

        for (size_t i = 0; i < size;) {
                size_t length = utf8_length(text + i, size - i);

                if (length == 0)
                        text[i] = '?';
                i += length ? length : 1;
        }
}
