/* SPDX-License-Identifier: MIT */
/* filesystem_sight: one byte makes a disk not blank, where any signature can be. */
#include "ublkd/filesystems/filesystem_sight.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"

#include <sys/mman.h>

static const char uuid[] = "11111111-2222-4333-8444-55555555abcd";
static const unsigned char uuid_bytes[] = {
        0x11, 0x11, 0x11, 0x11, 0x22, 0x22, 0x43, 0x33, 0x84, 0x44, 0x55, 0x55, 0x55, 0x55, 0xab, 0xcd};

static int make_disk(off_t size)
{
        int fd = memfd_create("disk", MFD_CLOEXEC);

        return fd < 0 || ftruncate(fd, size) < 0 ? -1 : fd;
}

static int look(int disk)
{
        return filesystem_sight(disk, FILESYSTEM_EXT4, uuid);
}

static void test_zeroes_are_blank(void)
{
        static const off_t sizes[] = {4096, 1 << 20, 5 << 20, (8 << 20) + 512, 64 << 20, (off_t)20 << 30};

        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                _cleanup_close_ int disk = make_disk(sizes[i]);

                CHECK_INT(look(disk), FILESYSTEM_SEES_BLANK);
        }
}

/* Offsets from the end are negative. The places of superblocks and labels that libblkid knows are between these. */
static void test_one_byte_is_enough(void)
{
        static const off_t places[] = {0, 510, 512, 1024 + 0x38, 4096, 32768, 65536, 64 << 10, 2 << 20,
                (4 << 20) - 1, -1, -512, -4096, -65536, -(2 << 20), -(4 << 20)};

        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                off_t size = (off_t)20 << 30;
                _cleanup_close_ int disk = make_disk(size);

                CHECK_INT(pwrite(disk, "x", 1, places[i] < 0 ? size + places[i] : places[i]), 1);
                if (!CHECK_INT(look(disk), FILESYSTEM_SEES_OTHER))
                        fprintf(stderr, "at %jd\n", (intmax_t)places[i]);
        }
}

static void test_a_part_in_the_middle_is_found(void)
{
        static char data[1 << 20];
        off_t size = 256 << 20;
        _cleanup_close_ int disk = make_disk(size);

        memset(data, 'x', sizeof(data));
        CHECK_INT(pwrite(disk, data, sizeof(data), (100 << 20) + 12345), (int)sizeof(data));
        CHECK_INT(look(disk), FILESYSTEM_SEES_OTHER);
}

static void test_a_file_system_is_known_by_its_uuid(void)
{
        _cleanup_close_ int ext4 = make_disk(16 << 20), xfs = make_disk(16 << 20);

        CHECK_INT(pwrite(ext4, "\x53\xef", 2, 1024 + 0x38), 2);
        CHECK_INT(filesystem_sight(ext4, FILESYSTEM_EXT4, uuid), FILESYSTEM_SEES_OTHER);
        CHECK_INT(pwrite(ext4, uuid_bytes, 16, 1024 + 0x68), 16);
        CHECK_INT(filesystem_sight(ext4, FILESYSTEM_EXT4, uuid), FILESYSTEM_SEES_IT);
        CHECK_INT(filesystem_sight(ext4, FILESYSTEM_XFS, uuid), FILESYSTEM_SEES_OTHER);
        CHECK_INT(filesystem_sight(ext4, FILESYSTEM_EXT4, ""), FILESYSTEM_SEES_OTHER);
        CHECK_INT(pwrite(xfs, "XFSB", 4, 0), 4);
        CHECK_INT(pwrite(xfs, uuid_bytes, 16, 32), 16);
        CHECK_INT(filesystem_sight(xfs, FILESYSTEM_XFS, uuid), FILESYSTEM_SEES_IT);
}

int main(void)
{
        test_zeroes_are_blank();
        test_one_byte_is_enough();
        test_a_part_in_the_middle_is_found();
        test_a_file_system_is_known_by_its_uuid();
        return check_report();
}
