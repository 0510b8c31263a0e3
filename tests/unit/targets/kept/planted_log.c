/* SPDX-License-Identifier: MIT */
/* The log of records with a fault that record_log_kill_test.c must find. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static uint32_t planted_crc32c(uint32_t before, const void *data, size_t size);

#if defined(PLANT_NO_CHECKSUM)
/* The seal has a constant in the place of the checksum. */
static uint32_t planted_crc32c(uint32_t before, const void *data, size_t size)
{
        (void)before, (void)data, (void)size;
        return 0;
}
#define crc32c planted_crc32c
#include "targets/kept/record_log.c"

#elif defined(PLANT_EARLY_SEAL)
/* The record is stored after its seal, which has the checksum of what is to come. */
static struct {
        void *to;
        const void *from;
        size_t size;
} late;

static void *late_copy(void *to, const void *from, size_t size)
{
        late.to = to;
        late.from = from;
        late.size = size;
        return to;
}

#define crc32c planted_crc32c
#define memcpy late_copy
#define record_log_append append_early
#include "targets/kept/record_log.c"
#undef crc32c
#undef memcpy
#undef record_log_append

uint32_t crc32c(uint32_t before, const void *data, size_t size);

static uint32_t planted_crc32c(uint32_t before, const void *data, size_t size)
{
        return crc32c(before, late.size > 0 && data == late.to ? late.from : data, size);
}

int record_log_append(struct record_log *log, const void *record, uint32_t length);

int record_log_append(struct record_log *log, const void *record, uint32_t length)
{
        int slot = append_early(log, record, length);

        memcpy(late.to, late.from, late.size);
        late.size = 0;
        return slot;
}
#else
#error "which fault?"
#endif
