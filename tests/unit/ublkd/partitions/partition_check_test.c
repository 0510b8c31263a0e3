/* SPDX-License-Identifier: MIT */
/* partition_check: no number of a table gets through that the kernel, or another entry, would suffer from. */
#include "ublkd/partitions/partition_check.h"

#include "tests/unit/check.h"

static const struct partition_disk disk = {.sectors = 1000, .block_sectors = 8};

static void check(const struct partition *entries, size_t count, struct partition_verdict *ret)
{
        partition_check(entries, count, &disk, ret);
        CHECK_INT(ret->good.count + ret->faults, count);
}

static enum partition_fault fault_of(uint32_t number, uint64_t start, uint64_t size)
{
        struct partition_verdict verdict;

        check(&(const struct partition){number, start, size}, 1, &verdict);
        CHECK_INT(verdict.good.count, verdict.fault == PARTITION_GOOD);
        if (verdict.fault != PARTITION_GOOD)
                CHECK_INT(verdict.number, number);
        return verdict.fault;
}

static void test_one_entry(void)
{
        CHECK_INT(fault_of(1, 8, 8), PARTITION_GOOD);
        CHECK_INT(fault_of(255, 0, 1000), PARTITION_GOOD);
        CHECK_INT(fault_of(0, 8, 8), PARTITION_BAD_NUMBER);
        CHECK_INT(fault_of(256, 8, 8), PARTITION_BAD_NUMBER);
        CHECK_INT(fault_of(UINT32_MAX, 8, 8), PARTITION_BAD_NUMBER);
        CHECK_INT(fault_of(1, 8, 0), PARTITION_EMPTY);
        CHECK_INT(fault_of(1, 1000, 8), PARTITION_BEYOND_END);
        CHECK_INT(fault_of(1, 8, 1000), PARTITION_BEYOND_END);
        CHECK_INT(fault_of(1, UINT64_MAX - 7, 16), PARTITION_BEYOND_END);
        CHECK_INT(fault_of(1, 8, UINT64_MAX - 7), PARTITION_BEYOND_END);
        CHECK_INT(fault_of(1, UINT64_MAX, UINT64_MAX), PARTITION_BEYOND_END);
        CHECK_INT(fault_of(1, 4, 8), PARTITION_UNALIGNED);
        CHECK_INT(fault_of(1, 8, 12), PARTITION_UNALIGNED);
}

static void test_entries_that_exclude_each_other(void)
{
        static const struct partition entries[] = {
                {1, 8,   16 },
                {2, 24,  8  }, /* right behind it */
                {3, 16,  8  },
                {2, 800, 8  },
                {4, 0,   992},
                {0, 900, 8  },
                {5, 32,  8  },
        };
        struct partition_verdict verdict;

        check(entries, sizeof(entries) / sizeof(entries[0]), &verdict);
        CHECK_INT(verdict.good.count, 3);
        CHECK_INT(verdict.good.items[0].number, 1);
        CHECK_INT(verdict.good.items[1].number, 2);
        CHECK_INT(verdict.good.items[1].start, 24); /* the first with this number */
        CHECK_INT(verdict.good.items[2].number, 5);
        CHECK_INT(verdict.fault, PARTITION_OVERLAPS);
        CHECK_INT(verdict.number, 3);
        /* What is shown under these stays; 2 is known, and 0 is not a number. */
        CHECK(verdict.leave[3] && verdict.leave[4]);
        CHECK(!verdict.leave[0] && !verdict.leave[1] && !verdict.leave[2] && !verdict.leave[5]);
}

/* The list has room for each number once, however long the table is. */
static void test_more_entries_than_numbers(void)
{
        static struct partition entries[1024];
        static const struct partition_disk large = {.sectors = UINT64_C(1) << 40, .block_sectors = 1};
        struct partition_verdict verdict;

        for (uint32_t i = 0; i < 1024; i++)
                entries[i] = (struct partition){i, 10 * i, 10};
        partition_check(entries, 1024, &large, &verdict);
        CHECK_INT(verdict.good.count, PARTITION_NUMBER_MAX);
        CHECK_INT(verdict.faults, 1024 - PARTITION_NUMBER_MAX);
        CHECK_INT(verdict.fault, PARTITION_BAD_NUMBER);
}

static void test_no_entries(void)
{
        struct partition_verdict verdict;

        check(NULL, 0, &verdict);
        CHECK_INT(verdict.fault, PARTITION_GOOD);
        for (unsigned fault = 0; fault < _PARTITION_FAULT_MAX; fault++)
                CHECK(partition_fault_to_string((enum partition_fault)fault));
}

int main(void)
{
        test_one_entry();
        test_entries_that_exclude_each_other();
        test_more_entries_than_numbers();
        test_no_entries();
        return check_report();
}
