/* SPDX-License-Identifier: MIT */
/* filesystem_claim: of which node it is asked, and what counts as an answer. Disks of the kernel are in tests/kernel. */
#include "ublkd/filesystems/filesystem_claim.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define NODE "/dev/of-the-test"
#define LINK "/dev/block/4095:7"

/* The disk of each of the two paths; 0: it is not there. */
static dev_t at_node, at_link;

/* What an open of the disk itself fails with; 0: it does not. And how often it was opened. */
static int open_error;
static unsigned *opened; /* shared with the child that opens */

/* Whether the link was opened last. */
static bool is_link;

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_fstat(int fd, struct stat *st);

int __wrap_open(const char *path, int flags, ...)
{
        if (strcmp(path, NODE) != 0 && strcmp(path, LINK) != 0) {
                CHECK(flags & O_EXCL);
                ++*opened;
                errno = open_error;
                return open_error ? -1 : __real_open(path, O_RDONLY | O_CLOEXEC);
        }
        CHECK(flags & O_PATH);
        is_link = strcmp(path, LINK) == 0;
        errno = ENOENT;
        return (is_link ? at_link : at_node) ? __real_open("/dev/null", flags) : -1;
}

int __wrap_fstat(int fd, struct stat *st)
{
        CHECK(fd >= 0);
        *st = (struct stat){.st_mode = S_IFBLK, .st_rdev = is_link ? at_link : at_node};
        return 0;
}

static enum filesystem_claim find(dev_t node, dev_t link, int error)
{
        at_node = node;
        at_link = link;
        open_error = error;
        *opened = 0;
        return filesystem_claim_find(makedev(4095, 7), NODE);
}

static void test_a_file_system_without_a_disk_claims_none(void)
{
        CHECK_INT(filesystem_claim_find(makedev(0, 77), NODE), FILESYSTEM_CLAIM_FREE);
        CHECK_INT(*opened, 0);
}

static void test_the_open_of_the_disk_tells(void)
{
        dev_t disk = makedev(4095, 7);

        CHECK_INT(find(disk, 0, 0), FILESYSTEM_CLAIM_FREE);
        CHECK_INT(find(disk, 0, EBUSY), FILESYSTEM_CLAIM_TAKEN);
        CHECK_INT(find(disk, 0, ENXIO), FILESYSTEM_CLAIM_UNSEEN);
}

/* A host without udev has no links; and the node may be that of a disk that came after this one. */
static void test_the_node_and_the_link_lead_to_it(void)
{
        dev_t disk = makedev(4095, 7), other = makedev(4095, 8);

        CHECK_INT(find(disk, other, EBUSY), FILESYSTEM_CLAIM_TAKEN);
        CHECK_INT(find(other, disk, EBUSY), FILESYSTEM_CLAIM_TAKEN);
        CHECK_INT(find(0, disk, 0), FILESYSTEM_CLAIM_FREE);
        CHECK_INT(*opened, 1);
        at_node = disk;
        CHECK_INT(filesystem_claim_find(disk, ""), FILESYSTEM_CLAIM_FREE);
        CHECK(is_link);
}

static void test_another_disk_is_not_asked(void)
{
        dev_t other = makedev(4095, 8);

        CHECK_INT(find(other, other, EBUSY), FILESYSTEM_CLAIM_UNSEEN);
        CHECK_INT(find(0, 0, EBUSY), FILESYSTEM_CLAIM_UNSEEN);
        CHECK_INT(*opened, 0);
}

int main(void)
{
        opened = mmap(NULL, sizeof(*opened), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (!CHECK(opened != MAP_FAILED))
                return check_report();
        test_a_file_system_without_a_disk_claims_none();
        test_the_open_of_the_disk_tells();
        test_the_node_and_the_link_lead_to_it();
        test_another_disk_is_not_asked();
        return check_report();
}
