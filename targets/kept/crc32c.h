/* SPDX-License-Identifier: MIT */
/* The checksum CRC-32C (Castagnoli; RFC 3720, appendix B.4). */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Return the checksum of `size` bytes that follow those of which `before` is the checksum; 0: of none. From any thread. */
uint32_t crc32c(uint32_t before, const void *data, size_t size);
/* The same without instructions of the CPU for it, for the test that compares the two. */
uint32_t crc32c_portable(uint32_t before, const void *data, size_t size);
