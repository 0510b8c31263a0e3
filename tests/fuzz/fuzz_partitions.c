/* SPDX-License-Identifier: MIT */
/* Partition tables: whatever a disk begins with, and whatever its reader says, what gets through can be shown. */
#include "tests/fuzz/fuzz.h"
#include "ublkd/partitions/partition_check.h"
#include "ublkd/partitions/partition_table.h"

#include "ublkd/base/cleanup.h"

#include <string.h>
#include <sys/mman.h>

enum { IMAGE_SIZE = 1 << 20 };

static void check(const struct partition *entries, size_t count)
{
        static const struct partition_disk disk = {
                .sectors = IMAGE_SIZE / PARTITION_SECTOR, .block_sectors = 1};
        struct partition_verdict verdict;

        partition_check(entries, count, &disk, &verdict);
        FUZZ_CHECK(verdict.good.count + verdict.faults == count);
        for (size_t i = 0; i < verdict.good.count; i++) {
                const struct partition *one = &verdict.good.items[i];

                FUZZ_CHECK(one->number >= 1 && one->number <= PARTITION_NUMBER_MAX
                           && !verdict.leave[one->number]);
                FUZZ_CHECK(
                        one->size > 0 && one->size <= disk.sectors && one->start <= disk.sectors - one->size);
                for (size_t j = 0; j < i; j++) {
                        const struct partition *other = &verdict.good.items[j];

                        FUZZ_CHECK(one->number != other->number);
                        FUZZ_CHECK(one->start >= other->start + other->size
                                   || other->start >= one->start + one->size);
                }
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct partition entries[PARTITION_ENTRIES_MAX];
        _cleanup_close_ int image = memfd_create("image", MFD_CLOEXEC);
        size_t count = size / sizeof(entries[0]) < PARTITION_ENTRIES_MAX ? size / sizeof(entries[0])
                                                                         : PARTITION_ENTRIES_MAX;
        size_t begin = size < IMAGE_SIZE ? size : IMAGE_SIZE;
        int found;

        FUZZ_CHECK(image >= 0 && ftruncate(image, IMAGE_SIZE) == 0);
        FUZZ_CHECK(pwrite(image, data, begin, 0) == (ssize_t)begin);
        found = partition_table_read(image, 0, entries);
        FUZZ_CHECK(found <= PARTITION_ENTRIES_MAX);
        if (found > 0)
                check(entries, (size_t)found);
        if (count > 0)
                memcpy(entries, data, count * sizeof(entries[0]));
        check(entries, count);
        return 0;
}
