/* SPDX-License-Identifier: MIT */
/* The partitions that the kernel shows of a disk.
 *
 * They are changed one at a time by BLKPG, which the kernel takes also of a disk whose table it does not read itself
 * (GD_SUPPRESS_PART_SCAN). It refuses to delete a partition that is open, and to add one that overlaps another. */
#include "ublkd/partitions/disk_partitions.h"
#include "ublkd/partitions/partition_steps.h"

#include "ublkd/base/file_io.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/blkpg.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#ifndef BLKGETDISKSEQ /* Linux 5.15 */
#define BLKGETDISKSEQ _IOR(0x12, 128, __u64)
#endif

static const char *sys_of(const struct disk_partitions_roots *roots)
{
        return roots->sys ? roots->sys : "/sys";
}

/* O_NONBLOCK as usual for a probe. The close of a descriptor that cannot write causes no event of udev. */
static int open_node(int number)
{
        char path[32];
        int fd;

        snprintf(path, sizeof(path), "/dev/ublkb%d", number);
        fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* The node may have been replaced by another one. */
static int check_node(const struct disk_partitions_roots *roots, int number, int fd)
{
        char path[PATH_MAX];
        struct stat info;
        dev_t device;
        int r;

        snprintf(path, sizeof(path), "%s/block/ublkb%d/dev", sys_of(roots), number);
        r = read_device_at(AT_FDCWD, path, &device);
        if (r < 0)
                return r;
        if (fstat(fd, &info) < 0)
                return -errno;
        return S_ISBLK(info.st_mode) && info.st_rdev == device ? 0 : -ESTALE;
}

static int read_header(int fd, struct partition_header *ret)
{
        uint64_t bytes, sequence = 0;
        int block;

        if (ioctl(fd, BLKGETSIZE64, &bytes) < 0 || ioctl(fd, BLKSSZGET, &block) < 0)
                return -errno;
        if (block < PARTITION_SECTOR)
                return -EINVAL;
        (void)ioctl(fd, BLKGETDISKSEQ, &sequence);
        *ret = (struct partition_header){
                .block_sectors = (uint32_t)block / PARTITION_SECTOR,
                .sectors = bytes / PARTITION_SECTOR,
                .disk_sequence = sequence,
        };
        return 0;
}

/* A test's image has one block size and no sequence. */
static int read_image_header(int fd, struct partition_header *ret)
{
        struct stat info;

        if (fstat(fd, &info) < 0)
                return -errno;
        *ret = (struct partition_header){
                .block_sectors = 1, .sectors = (uint64_t)info.st_size / PARTITION_SECTOR};
        return 0;
}

int disk_partitions_open(const struct disk_partitions_roots *roots, int number, struct partition_header *ret)
{
        _cleanup_close_ int fd = roots->open ? roots->open(number) : open_node(number);
        int r;

        if (fd < 0)
                return fd;
        r = roots->open ? 0 : check_node(roots, number, fd);
        if (r >= 0)
                r = roots->open ? read_image_header(fd, ret) : read_header(fd, ret);
        return r < 0 ? r : TAKE_FD(fd);
}

/* ---- what is shown ---- */

/* Return whether a name in the folder of a disk is that of a partition. */
static bool is_partition(const char *name, const char *disk)
{
        size_t length = strlen(disk);

        return strncmp(name, disk, length) == 0 && name[length] == 'p' && name[length + 1] != '\0'
               && strspn(name + length + 1, "0123456789") == strlen(name + length + 1);
}

static int read_attribute(int folder, const char *partition, const char *attribute, uint64_t *ret)
{
        char path[NAME_MAX + 32];

        snprintf(path, sizeof(path), "%s/%s", partition, attribute);
        return read_number_at(folder, path, ret);
}

/* Return 1; 0: it has gone meanwhile; -errno. */
static int read_partition(int folder, const char *name, struct partition *ret)
{
        uint64_t number;
        int r = read_attribute(folder, name, "partition", &number);

        if (r >= 0)
                r = read_attribute(folder, name, "start", &ret->start);
        if (r >= 0)
                r = read_attribute(folder, name, "size", &ret->size);
        if (r < 0)
                return r == -ENOENT || r == -ENODEV ? 0 : r;
        if (number == 0 || number > PARTITION_NUMBER_MAX)
                return -ERANGE;
        ret->number = (uint32_t)number;
        return 1;
}

int disk_partitions_read(const struct disk_partitions_roots *roots, int number, struct partition_list *ret)
{
        _cleanup_closedir_ DIR *dir = NULL;
        char folder[PATH_MAX], disk[32];
        const struct dirent *entry;
        int r = 0;

        snprintf(disk, sizeof(disk), "ublkb%d", number);
        snprintf(folder, sizeof(folder), "%s/block/%s", sys_of(roots), disk);
        dir = opendir(folder);
        if (!dir)
                return -errno;
        ret->count = 0;
        while (r >= 0 && (errno = 0, entry = readdir(dir))) {
                if (!is_partition(entry->d_name, disk))
                        continue;
                if (ret->count == PARTITION_NUMBER_MAX)
                        return -E2BIG;
                r = read_partition(dirfd(dir), entry->d_name, &ret->items[ret->count]);
                if (r > 0)
                        ret->count++;
        }
        return r < 0 ? r : -errno;
}

/* ---- changes ---- */

static int change_by_blkpg(int disk, const struct partition_step *step)
{
        static const int operations[] = {
                [PARTITION_DELETE] = BLKPG_DEL_PARTITION,
                [PARTITION_GROW] = BLKPG_RESIZE_PARTITION,
                [PARTITION_ADD] = BLKPG_ADD_PARTITION,
        };
        struct blkpg_partition partition = {
                .start = (long long)step->partition.start * PARTITION_SECTOR,
                .length = (long long)step->partition.size * PARTITION_SECTOR,
                .pno = (int)step->partition.number,
        };
        struct blkpg_ioctl_arg argument = {
                .op = operations[step->action], .datalen = sizeof(partition), .data = &partition};

        return ioctl(disk, BLKPG, &argument) < 0 ? -errno : 0;
}

static void run_steps(const struct disk_partitions_roots *roots, int disk,
        const struct partition_steps *steps, struct partition_change *ret)
{
        int (*change)(int, const struct partition_step *) = roots->change ? roots->change : change_by_blkpg;
        bool kept[PARTITION_NUMBER_MAX + 1] = {};

        for (size_t i = 0; i < steps->count; i++) {
                const struct partition_step *step = &steps->items[i];
                int r = kept[step->partition.number] ? -EBUSY : change(disk, step);

                if (r >= 0) {
                        ret->changed++;
                        continue;
                }
                kept[step->partition.number] = true;
                if (ret->refused++ == 0) {
                        ret->number = step->partition.number;
                        ret->refusal = r;
                }
        }
}

static int open_same(
        const struct disk_partitions_roots *roots, int number, const struct partition_header *header)
{
        struct partition_header now;
        _cleanup_close_ int fd = disk_partitions_open(roots, number, &now);

        if (fd >= 0 && header
                && (now.disk_sequence != header->disk_sequence || now.sectors != header->sectors
                        || now.block_sectors != header->block_sectors))
                return -ESTALE;
        return TAKE_FD(fd);
}

void disk_partitions_change(const struct disk_partitions_roots *roots, int number,
        const struct partition_header *header, const struct partition_list *wanted,
        const bool leave[static PARTITION_NUMBER_MAX + 1], struct partition_change *ret)
{
        _cleanup_close_ int disk = -1;
        static struct partition_list present;
        static struct partition_steps steps;

        *ret = (struct partition_change){};
        ret->error = disk_partitions_read(roots, number, &present);
        if (ret->error < 0)
                return;
        partition_steps_find(&present, wanted, leave, &steps);
        if (steps.count == 0)
                return;
        disk = open_same(roots, number, header);
        if (disk < 0)
                ret->error = disk;
        else
                run_steps(roots, disk, &steps, ret);
}
