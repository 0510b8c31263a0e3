/* SPDX-License-Identifier: MIT */
/* CRC-32C: the values of RFC 3720, appendix B.4, with and without the CPU's instruction. */
#include "targets/kept/crc32c.h"
#include "tests/unit/check.h"

static void check_both(const void *data, size_t size, uint32_t wanted)
{
        CHECK_INT(crc32c(0, data, size), wanted);
        CHECK_INT(crc32c_portable(0, data, size), wanted);
}

static void test_known_values(void)
{
        unsigned char bytes[32];

        check_both("123456789", 9, 0xe3069283);
        check_both("", 0, 0);
        memset(bytes, 0, sizeof(bytes));
        check_both(bytes, sizeof(bytes), 0x8a9136aa);
        memset(bytes, 0xff, sizeof(bytes));
        check_both(bytes, sizeof(bytes), 0x62a8ab43);
        for (unsigned i = 0; i < sizeof(bytes); i++)
                bytes[i] = (unsigned char)i;
        check_both(bytes, sizeof(bytes), 0x46dd794e);
        for (unsigned i = 0; i < sizeof(bytes); i++)
                bytes[i] = (unsigned char)(31 - i);
        check_both(bytes, sizeof(bytes), 0x113fdb5c);
}

/* Of every length and alignment, and in two pieces as in one. */
static void test_pieces(void)
{
        unsigned char bytes[96];

        for (unsigned i = 0; i < sizeof(bytes); i++)
                bytes[i] = (unsigned char)(i * 151 + 7);
        for (size_t from = 0; from < 9; from++)
                for (size_t size = 0; from + size <= sizeof(bytes); size++) {
                        uint32_t whole = crc32c(0, bytes + from, size);

                        CHECK_INT(whole, crc32c_portable(0, bytes + from, size));
                        CHECK_INT(crc32c(crc32c(0, bytes + from, size / 3), bytes + from + size / 3,
                                          size - size / 3),
                                whole);
                }
}

int main(void)
{
        test_known_values();
        test_pieces();
        return check_report();
}
