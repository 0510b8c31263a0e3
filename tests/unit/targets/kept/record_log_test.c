/* SPDX-License-Identifier: MIT */
/* The log of records: what is appended is found again, in order; what is not a record of this log is rejected. */
#include "targets/kept/record_log.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <stdlib.h>

enum { RECORDS = 5, SIZE = 40, MEMORY = 512 };

#define SEED UINT64_C(0x0123456789abcdef)

struct memory {
        _Alignas(64) unsigned char bytes[MEMORY];
};

static struct record_log *open_log(struct memory *memory, uint64_t seed)
{
        struct record_log *log = NULL;

        CHECK_INT(record_log_open(memory->bytes, record_log_memory(RECORDS, SIZE), seed, SIZE, &log), 0);
        return log;
}

static int append_text(struct record_log *log, const char *text)
{
        return record_log_append(log, text, (uint32_t)strlen(text));
}

static int add_text(void *userdata, unsigned slot, const void *record, uint32_t length)
{
        char *all = userdata;

        (void)slot;
        strcat(strncat(all, record, length), " ");
        return strncmp(record, "stop", 4) == 0 ? -ECANCELED : 0;
}

static void check_replay(struct record_log *log, const char *wanted)
{
        char all[MEMORY] = "";

        CHECK_INT(record_log_replay(log, add_text, all), 0);
        CHECK_STR(all, wanted);
}

static void test_records_are_found_in_order(void)
{
        struct memory memory = {};
        struct record_log *log = open_log(&memory, SEED);
        uint32_t length;
        int first;

        CHECK_INT(record_log_slots(log), RECORDS);
        check_replay(log, "");
        first = append_text(log, "one");
        CHECK_INT(append_text(log, "two") >= 0, 1);
        record_log_erase(log, (unsigned)first);
        /* Into the slot of the first, and yet the newest. */
        CHECK_INT(append_text(log, "three"), first);
        CHECK_INT(memcmp(record_log_get(log, (unsigned)first, &length), "three", 5), 0);
        CHECK_INT(length, 5);
        check_replay(log, "two three ");
        record_log_free(log);
        log = open_log(&memory, SEED);
        CHECK_INT(record_log_count(log), 2);
        CHECK_INT(record_log_rejected(log), 0);
        check_replay(log, "two three ");
        /* The next process counts on. */
        CHECK_INT(append_text(log, "four") >= 0, 1);
        check_replay(log, "two three four ");
        record_log_free(log);
}

static void test_bounds(void)
{
        struct memory memory = {};
        struct record_log *log = open_log(&memory, SEED), *none = NULL;
        char large[SIZE + 1] = "";
        char all[MEMORY] = "";

        CHECK_INT(record_log_append(log, large, SIZE + 1), -EINVAL);
        CHECK_INT(record_log_append(log, large, 0), -EINVAL);
        for (unsigned i = 0; i < RECORDS; i++)
                CHECK_INT(record_log_append(log, large, SIZE), i);
        CHECK_INT(record_log_append(log, large, 1), -ENOSPC);
        CHECK_INT(record_log_count(log), RECORDS);
        record_log_erase(log, 3);
        CHECK_INT(append_text(log, "stop"), 3);
        CHECK_INT(record_log_replay(log, add_text, all), -ECANCELED);
        for (size_t i = record_log_memory(RECORDS, SIZE); i < MEMORY; i++)
                CHECK_INT(memory.bytes[i], 0);
        record_log_free(log);
        CHECK_INT(record_log_open(memory.bytes, record_log_memory(1, SIZE) - 1, SEED, SIZE, &none), -EINVAL);
        CHECK_INT(record_log_open(memory.bytes, MEMORY, SEED, 0, &none), -EINVAL);
        CHECK_INT(record_log_open(memory.bytes, MEMORY, SEED, RECORD_LOG_SIZE_MAX + 1, &none), -EINVAL);
        CHECK(!none);
}

/* Of another memory, of another form, or in another place of the same one. */
static void test_foreign_records_are_rejected(void)
{
        struct memory memory = {}, copy;
        size_t stride = record_log_memory(1, SIZE);
        struct record_log *log = open_log(&memory, SEED);

        for (unsigned i = 0; i < 3; i++)
                CHECK_INT(append_text(log, "kept"), i);
        record_log_free(log);

        copy = memory;
        log = open_log(&copy, SEED + 1);
        CHECK_INT(record_log_count(log), 0);
        CHECK_INT(record_log_rejected(log), 3);
        record_log_free(log);
        log = open_log(&copy, SEED + 1); /* they are gone now, whatever the seed */
        CHECK_INT(record_log_rejected(log), 0);
        record_log_free(log);

        copy = memory;
        CHECK_INT(record_log_open(copy.bytes, record_log_memory(RECORDS, SIZE), SEED, SIZE - 1, &log), 0);
        CHECK_INT(record_log_count(log), 0);
        record_log_free(log);

        copy = memory;
        memcpy(copy.bytes + 4 * stride, memory.bytes + 2 * stride, stride);
        log = open_log(&copy, SEED);
        CHECK_INT(record_log_count(log), 3);
        CHECK_INT(record_log_rejected(log), 1);
        check_replay(log, "kept kept kept ");
        record_log_free(log);
}

/* Whichever bit changes, the record is rejected. */
static void test_each_bit_is_checked(void)
{
        struct memory memory = {}, copy;
        size_t stride = record_log_memory(1, SIZE);
        struct record_log *log = open_log(&memory, SEED);
        char full[SIZE];

        memset(full, 0xa5, sizeof(full));
        CHECK_INT(append_text(log, "before"), 0);
        CHECK_INT(record_log_append(log, full, SIZE), 1);
        record_log_free(log);
        for (size_t bit = 0; bit < stride * 8; bit++) {
                copy = memory;
                copy.bytes[stride + bit / 8] ^= (unsigned char)(1U << bit % 8);
                log = open_log(&copy, SEED);
                CHECK_INT(record_log_rejected(log), 1);
                check_replay(log, "before ");
                record_log_free(log);
        }
}

static void test_rubbish_is_rejected(void)
{
        struct memory memory;

        for (unsigned seed = 1; seed < 200; seed++) {
                struct record_log *log;

                srand(seed);
                for (size_t i = 0; i < MEMORY; i++)
                        memory.bytes[i] = (unsigned char)rand();
                log = open_log(&memory, SEED);
                CHECK_INT(record_log_rejected(log), RECORDS);
                CHECK_INT(append_text(log, "fine"), 0);
                check_replay(log, "fine ");
                record_log_free(log);
        }
}

int main(void)
{
        test_records_are_found_in_order();
        test_bounds();
        test_foreign_records_are_rejected();
        test_each_bit_is_checked();
        test_rubbish_is_rejected();
        return check_report();
}
