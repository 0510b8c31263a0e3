/* SPDX-License-Identifier: MIT */
/* The checksum CRC-32C, with the instruction of x86-64 where the CPU has it. */
#include "targets/kept/crc32c.h"

#include <stdbool.h>
#include <string.h>

/* Of each half of a byte, for the polynomial 0x1edc6f41 with its bits in reverse. */
static const uint32_t halves[16] = {
        0x00000000,
        0x105ec76f,
        0x20bd8ede,
        0x30e349b1,
        0x417b1dbc,
        0x5125dad3,
        0x61c69362,
        0x7198540d,
        0x82f63b78,
        0x92a8fc17,
        0xa24bb5a6,
        0xb21572c9,
        0xc38d26c4,
        0xd3d3e1ab,
        0xe330a81a,
        0xf36e6f75,
};

uint32_t crc32c_portable(uint32_t before, const void *data, size_t size)
{
        const unsigned char *bytes = data;
        uint32_t crc = ~before;

        for (size_t i = 0; i < size; i++) {
                crc ^= bytes[i];
                crc = crc >> 4 ^ halves[crc & 15];
                crc = crc >> 4 ^ halves[crc & 15];
        }
        return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse(uint32_t before, const void *data, size_t size)
{
        const unsigned char *bytes = data;
        uint64_t crc = (uint32_t)~before, word;

        for (; size >= sizeof(word); size -= sizeof(word), bytes += sizeof(word)) {
                memcpy(&word, bytes, sizeof(word));
                crc = __builtin_ia32_crc32di(crc, word);
        }
        for (; size > 0; size--, bytes++)
                crc = __builtin_ia32_crc32qi((uint32_t)crc, *bytes);
        return ~(uint32_t)crc;
}

uint32_t crc32c(uint32_t before, const void *data, size_t size)
{
        return __builtin_cpu_supports("sse4.2") ? crc32c_sse(before, data, size)
                                                : crc32c_portable(before, data, size);
}
#else
uint32_t crc32c(uint32_t before, const void *data, size_t size)
{
        return crc32c_portable(before, data, size);
}
#endif
