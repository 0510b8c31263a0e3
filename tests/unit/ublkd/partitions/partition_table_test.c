/* SPDX-License-Identifier: MIT */
/* partition_table: reads what sfdisk and fdisk write, and what is left of it. */
#include "ublkd/partitions/partition_table.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/partitions/shell.h"
#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { IMAGE_SIZE = 64 << 20 };

static char image[] = "/tmp/partition-table-XXXXXX";
static struct partition entries[PARTITION_ENTRIES_MAX];

static void new_image(void)
{
        CHECK_INT(truncate(image, 0), 0);
        CHECK_INT(truncate(image, IMAGE_SIZE), 0);
}

static void sfdisk(const char *script)
{
        new_image();
        shell_run("printf '%s' | PATH=$PATH:/sbin:/usr/sbin sfdisk --quiet --no-reread --wipe never %s",
                script, image);
}

static void overwrite(off_t at, size_t size, int byte)
{
        _cleanup_close_ int fd = open(image, O_WRONLY | O_CLOEXEC);
        _cleanup_free_ char *data = malloc(size);

        memset(data, byte, size);
        CHECK_INT(pwrite(fd, data, size, at), (ssize_t)size);
}

static int read_table(unsigned block_size)
{
        _cleanup_close_ int fd = open(image, O_RDONLY | O_CLOEXEC);

        memset(entries, 0, sizeof(entries));
        return partition_table_read(fd, block_size, entries);
}

static void check_entry(int i, uint32_t number, uint64_t start, uint64_t size)
{
        CHECK_INT(entries[i].number, number);
        CHECK_INT(entries[i].start, start);
        CHECK_INT(entries[i].size, size);
}

static void test_gpt(void)
{
        sfdisk("label: gpt\\nstart=2048,size=4096\\nstart=8192,size=1024\\n");
        CHECK_INT(read_table(0), 2);
        check_entry(0, 1, 2048, 4096);
        check_entry(1, 2, 8192, 1024);
}

/* Numbers are those of the table, not those of a count. */
static void test_gpt_with_gaps(void)
{
        sfdisk("label: gpt\\n/x3 : start=2048,size=4096\\n/x127 : start=8192,size=1024\\n");
        CHECK_INT(read_table(0), 2);
        check_entry(0, 3, 2048, 4096);
        check_entry(1, 127, 8192, 1024);
}

/* The first header and its entries are lost; the copy at the end counts. */
static void test_gpt_from_its_copy(void)
{
        sfdisk("label: gpt\\nstart=2048,size=4096\\n");
        overwrite(512, 33 * 512, 0);
        CHECK_INT(read_table(0), 1);
        check_entry(0, 1, 2048, 4096);
}

/* A disk without both has no table, which does not count as an error. */
static void test_gpt_without_any(void)
{
        sfdisk("label: gpt\\nstart=2048,size=4096\\n");
        overwrite(512, 33 * 512, 0);
        overwrite(IMAGE_SIZE - 33 * 512, 33 * 512, 0);
        CHECK_INT(read_table(0), 0); /* the entry of the MBR that protects it is none */
}

/* The file system that replaced the table must not bring its partitions back: the copy at the end is still there. */
static void test_gpt_without_its_mbr(void)
{
        sfdisk("label: gpt\\nstart=2048,size=4096\\n");
        overwrite(0, 34 * 512, 0);
        CHECK_INT(read_table(0), 0);
}

/* A disk that has grown: the copy is not at its end any more. */
static void test_gpt_of_a_disk_that_has_grown(void)
{
        sfdisk("label: gpt\\nstart=2048,size=4096\\n");
        CHECK_INT(truncate(image, 2 * (off_t)IMAGE_SIZE), 0);
        CHECK_INT(read_table(0), 1);
        check_entry(0, 1, 2048, 4096);
}

static void test_dos_with_logical_partitions(void)
{
        sfdisk("label: dos\\nstart=2048,size=4096,type=83\\nstart=8192,size=65536,type=5\\n"
               "start=10240,size=2048,type=83\\nstart=14336,size=2048,type=83\\n");
        CHECK_INT(read_table(0), 4);
        check_entry(0, 1, 2048, 4096);
        check_entry(1, 2, 8192, 2); /* as much as the kernel shows of it */
        check_entry(2, 5, 10240, 2048);
        check_entry(3, 6, 14336, 2048);
}

/* A sector of 4 KiB: numbers in the table mean eight times as much. */
static void test_blocks_of_4_kib(void)
{
        new_image();
        shell_run(
                "printf 'g\\nn\\n1\\n256\\n511\\nw\\n' | PATH=$PATH:/sbin:/usr/sbin fdisk --sector-size 4096 "
                "--wipe never %s >/dev/null",
                image);
        CHECK_INT(read_table(4096), 1);
        check_entry(0, 1, 2048, 2048);
        CHECK_INT(read_table(512), 0); /* what counts as a table with other blocks does not with these */
}

/* Without a table; and a FAT file system, whose first sector looks like one. */
static void test_no_table(void)
{
        static const unsigned char fat[] = {0xeb, 0x3c, 0x90, 'm', 'k', 'f', 's', '.', 'f', 'a', 't', 0, 2, 4,
                4, 0, 2, 0, 2, 0, 0, 0xf8, 128, 0, 32, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2, 0};
        _cleanup_close_ int fd = -1;

        new_image();
        CHECK_INT(read_table(0), 0);
        fd = open(image, O_WRONLY | O_CLOEXEC);
        CHECK_INT(pwrite(fd, fat, sizeof(fat), 0), (ssize_t)sizeof(fat));
        CHECK_INT(pwrite(fd, "FAT16   ", 8, 54), 8);
        CHECK_INT(pwrite(fd, "\x55\xaa", 2, 510), 2);
        CHECK_INT(read_table(0), 0);
}

/* Numbers as an enemy writes them come out as they are, for partition_check(). */
static void test_dos_beyond_the_end(void)
{
        sfdisk("label: dos\\nstart=2048,size=4096,type=83\\n");
        overwrite(446 + 12, 4, 0xff); /* the size of the first entry */
        CHECK_INT(read_table(0), 1);
        check_entry(0, 1, 2048, UINT32_MAX);
}

/* An extended partition whose chain leads back to itself ends the reading. */
static void test_dos_with_a_chain_without_end(void)
{
        sfdisk("label: dos\\nstart=8192,size=65536,type=5\\nstart=10240,size=2048,type=83\\n");
        overwrite(8192 * 512 + 446 + 16 + 4, 1, 5); /* its second entry: extended, */
        overwrite(8192 * 512 + 446 + 16 + 8, 4, 0); /* at its own place */
        overwrite(8192 * 512 + 446 + 16 + 12, 1, 99);
        CHECK(read_table(0) < 300);
}

static void test_what_cannot_be_read(void)
{
        _cleanup_close_ int pipe_end = -1;
        int ends[2];

        CHECK_INT(pipe(ends), 0);
        pipe_end = ends[0];
        close_fd(ends[1]);
        CHECK(partition_table_read(pipe_end, 0, entries) < 0);
        CHECK(partition_table_read(-1, 0, entries) < 0);
}

int main(void)
{
        int fd;

        if (system("PATH=$PATH:/sbin:/usr/sbin; command -v sfdisk >/dev/null && command -v fdisk >/dev/null")
                != 0) {
                fputs("sfdisk and fdisk are not installed\n", stderr);
                return CHECK_SKIP;
        }
        fd = mkstemp(image);
        if (!CHECK(fd >= 0))
                return check_report();
        close_fd(fd);
        test_gpt();
        test_gpt_with_gaps();
        test_gpt_from_its_copy();
        test_gpt_without_any();
        test_gpt_without_its_mbr();
        test_gpt_of_a_disk_that_has_grown();
        test_dos_with_logical_partitions();
        test_blocks_of_4_kib();
        test_no_table();
        test_dos_beyond_the_end();
        test_dos_with_a_chain_without_end();
        test_what_cannot_be_read();
        (void)unlink(image);
        return check_report();
}
