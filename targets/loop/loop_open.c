/* SPDX-License-Identifier: MIT */
/* Opening the backing store of a loop target, and finding out what it can do: every fault in words. */
#include "targets/loop/backing_stack.h"
#include "targets/loop/backing_users.h"
#include "targets/loop/block_device.h"
#include "targets/loop/loop.h"
#include "targets/loop/loop_options.h"
#include "targets/loop/loop_store.h"
#include "targets/loop/stable_name.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

enum {
        DIRECT_ALIGN_MAX = 4096,       /* the largest block size that can be served */
        DISCARD_MAX = 1 << 30,         /* bytes in one request; a fallocate() takes no longer for more */
        WRITTEN_ZEROES_MAX = 16 << 20, /* bytes in one request, where zeroes may have to be written */
};

/* What is known while the backing store is being opened. */
struct opening {
        struct target_device *device;
        const struct loop_options *options;
        struct problem_list *problems;
        struct stat stat;
        struct block_device disk; /* zeroed for a regular file */
        int fd;
        bool direct;
        uint32_t direct_align; /* bytes; 0: the kernel does not report it */
        uint32_t memory_align; /* bytes, of direct I/O; 0: the kernel does not report it */
};

static bool is_disk(const struct opening *opening)
{
        return S_ISBLK(opening->stat.st_mode);
}

/* Whether it is a file that lives in memory. io_uring has a thread of the kernel do each read and write of a
 * tmpfs (its files are not FMODE_NOWAIT: io_file_supports_nowait()), which takes longer than the copy. A
 * disk's node lies in a tmpfs, too, and shows nothing of the disk. */
static bool is_in_memory(const struct opening *opening)
{
        struct statfs buffer;

        return !is_disk(opening) && fstatfs(opening->fd, &buffer) == 0
               && (buffer.f_type == TMPFS_MAGIC || buffer.f_type == RAMFS_MAGIC);
}

/* Whether the kernel knows the file's size without asking a server, and returns it without waiting for a write
 * to the file: generic_file_llseek_size(). Network file systems and FUSE ask a server, overlayfs takes a lock
 * that writes hold. A disk that is made smaller is not made longer again by a write behind its end, so it is
 * enough to look after a request that failed. */
static bool is_end_known(const struct opening *opening)
{
        static const uint32_t magics[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                F2FS_SUPER_MAGIC, TMPFS_MAGIC, RAMFS_MAGIC};
        struct statfs buffer;

        if (is_disk(opening) || fstatfs(opening->fd, &buffer) < 0)
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(magics); i++)
                if ((uint32_t)buffer.f_type == magics[i])
                        return true;
        return false;
}

static int store_fault(const struct opening *opening, int error)
{
        return loop_store_fault(opening->device, opening->options, error, opening->problems);
}

static int open_file(struct opening *opening)
{
        int r = loop_store_open(
                opening->device, opening->options, &opening->fd, &opening->stat, opening->problems);

        if (r < 0 || !is_disk(opening))
                return r;
        r = block_device_read(opening->fd, opening->stat.st_rdev, &opening->disk);
        if (r < 0)
                return store_fault(opening, -r);
        return opening->disk.read_only && !opening->device->read_only ? store_fault(opening, EROFS) : 0;
}

static void note_end(struct target_device *device, uint64_t end, bool disk)
{
        device->store.end = end;
        device->store.end_known = end > 0 || !disk;
}

/* *ret: the bytes from the offset to the end. */
static int check_size(const struct opening *opening, uint64_t *ret)
{
        uint64_t size = is_disk(opening) ? opening->disk.size : (uint64_t)opening->stat.st_size;
        uint64_t offset = opening->options->offset;
        bool has_data = opening->device->store.has_data;
        int r;

        opening->device->linear_offset = offset;
        note_end(opening->device, size, is_disk(opening));
        if (size > 0 && offset < size) {
                *ret = size - offset;
                return 0;
        }
        if (size == 0)
                r = problem_add(opening->problems, ENOSPC, "/target/path", "BackingFileEmpty",
                        has_data ? "%s is empty; if a disk was on it, restore it from a copy: what is only "
                                   "given its size reads as zeroes."
                                 : "%s is empty; the file itself must have the size of the disk: 'truncate "
                                   "-s 10G FILE' "
                                   "gives it 10 GiB.",
                        opening->options->path);
        else
                r = problem_add(opening->problems, ENOSPC, "/target/offset", "OffsetBeyondEnd",
                        "The offset of %" PRIu64 " bytes is not within %s, which has %" PRIu64 " bytes; %s.",
                        offset, opening->options->path, size,
                        has_data ? "correct offset, or, if the file was cut off, restore it from a copy: "
                                   "what is only grown reads as zeroes"
                                 : "correct offset");
        return r < 0 ? r : -ENOSPC;
}

/* A disk punches and zeroes whole blocks of its own, whatever is read and written through the page cache. */
static int check_offset(const struct opening *opening)
{
        uint32_t block_size = opening->disk.logical_block_size;
        int r;

        if (!is_disk(opening)
                || (opening->options->offset + opening->device->wanted_offset) % block_size == 0)
                return 0;
        r = problem_add(opening->problems, EINVAL, "/target/offset", "OffsetNotAMultiple",
                "The offset of %" PRIu64 " bytes is not a multiple of %" PRIu32
                ", the block size of %s; correct offset.",
                opening->options->offset + opening->device->wanted_offset, block_size,
                opening->options->path);
        return r < 0 ? r : -EINVAL;
}

/* What direct I/O on the file must be a multiple of, in bytes; 0: it cannot, or the kernel does not report it. */
static uint32_t direct_alignment(struct opening *opening)
{
#ifdef STATX_DIOALIGN
        struct statx statx_buffer;
#endif

        if (is_disk(opening))
                return opening->disk.logical_block_size;
#ifdef STATX_DIOALIGN
        if (statx(opening->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &statx_buffer) == 0
                && (statx_buffer.stx_mask & STATX_DIOALIGN)
                && statx_buffer.stx_dio_mem_align <= DIRECT_ALIGN_MAX) {
                opening->memory_align = statx_buffer.stx_dio_mem_align;
                return statx_buffer.stx_dio_offset_align;
        }
#endif
        return 0;
}

/* For a file system that does not report it: the smallest block that a direct read takes. 0: none. Needs O_DIRECT
 * set. */
static uint32_t probe_alignment(const struct opening *opening)
{
        _cleanup_free_ void *buffer = NULL;

        buffer = aligned_alloc(DIRECT_ALIGN_MAX, DIRECT_ALIGN_MAX);
        for (uint32_t size = 512; buffer && size <= DIRECT_ALIGN_MAX; size *= 2)
                if (pread(opening->fd, buffer, size, 0) >= 0)
                        return size;
        return 0;
}

/* A disk's reads need not change the time of the last access, which would only cost. Not
 * every process may ask for that (EPERM). */
static void leave_access_time(int fd)
{
        int flags = fcntl(fd, F_GETFL);

        if (flags >= 0)
                (void)fcntl(fd, F_SETFL, flags | O_NOATIME);
}

static int set_direct(int fd, bool on)
{
        int flags = fcntl(fd, F_GETFL);

        if (flags < 0 || fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) < 0)
                return -errno;
        return 0;
}

/* `align`: what the backing store needs, or 0 when that is not the point. */
static int direct_fault(const struct opening *opening, const char *pointer, uint32_t align)
{
        int r;

        if (align == 0 || align > DIRECT_ALIGN_MAX)
                r = problem_add(opening->problems, EOPNOTSUPP, pointer, "DirectIoUnavailable",
                        "directIo is on, but the file system of %s cannot do it in blocks of up to %d bytes; "
                        "set directIo to auto, or move the file.",
                        opening->options->path, DIRECT_ALIGN_MAX);
        else
                r = problem_add(opening->problems, EINVAL, pointer, "DirectIoUnavailable",
                        "directIo is on, and %s needs multiples of %" PRIu32
                        " bytes for it; change this value, or set directIo to auto.",
                        opening->options->path, align);
        return r < 0 ? r : -EINVAL;
}

/* Chooses between direct and buffered I/O. With "auto" only a file system that states its needs is trusted.
 */
static int choose_direct(struct opening *opening)
{
        bool insisted = opening->options->direct_io == DIRECT_IO_ON;
        uint32_t block_size = opening->device->wanted_block_size; /* 0: any */
        const char *pointer = NULL;                               /* to what stands in the way */
        uint32_t align;

        if (opening->options->direct_io == DIRECT_IO_OFF)
                return 0;
        align = direct_alignment(opening);
        if (align == 0 && !insisted)
                return 0;
        if (set_direct(opening->fd, true) < 0)
                return insisted ? direct_fault(opening, "/target/directIo", 0) : 0;
        if (align == 0)
                align = probe_alignment(opening);
        if (align == 0 || align > DIRECT_ALIGN_MAX)
                pointer = "/target/directIo";
        else if (block_size % align != 0)
                pointer = "/blockSize";
        else if ((opening->options->offset + opening->device->wanted_offset) % align != 0)
                pointer = "/target/offset";
        if (pointer)
                return insisted ? direct_fault(opening, pointer, align) : set_direct(opening->fd, false);
        opening->direct = true;
        opening->direct_align = align;
        return 0;
}

/* Whether holes can be punched. Asked of a place behind the end, where nothing is. A file so large that there
 * is not such a place reports EFBIG, which decides nothing: assume the best, loop.c copes with the rest. */
static bool can_punch(const struct opening *opening)
{
        off_t behind = (opening->stat.st_size | (DISCARD_MAX - 1)) + 1;

        return fallocate(opening->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, behind, 1 << 20) == 0
               || (errno != EOPNOTSUPP && errno != ENOSYS);
}

static void disk_geometry_of(const struct opening *opening, struct target_geometry *geometry)
{
        const struct block_device *disk = &opening->disk;
        bool zeroes = disk->write_zeroes_max > 0, discards = zeroes && disk->discard_max > 0;

        geometry->logical_block_size = disk->logical_block_size;
        geometry->logical_block_size_min = disk->logical_block_size;
        geometry->physical_block_size = disk->physical_block_size;
        geometry->io_min = disk->io_min;
        geometry->io_opt = disk->io_opt;
        geometry->rotational = disk->rotational;
        /* A hole punched into a disk is its command to write zeroes, with leave to unmap: of use as a discard
         * only where there is something to unmap. */
        geometry->discard_granularity = disk->discard_granularity;
        geometry->max_discard_size = discards ? DISCARD_MAX : 0;
        geometry->max_write_zeroes_size = zeroes ? DISCARD_MAX : WRITTEN_ZEROES_MAX;
}

static void file_geometry_of(const struct opening *opening, struct target_geometry *geometry)
{
        uint32_t block = opening->stat.st_blksize > 0 && opening->stat.st_blksize < DIRECT_ALIGN_MAX
                                 ? (uint32_t)opening->stat.st_blksize
                                 : DIRECT_ALIGN_MAX;
        bool punch = !opening->device->read_only && can_punch(opening);

        geometry->logical_block_size =
                opening->direct && opening->direct_align > 512 ? opening->direct_align : 512;
        geometry->physical_block_size = block;
        geometry->io_min = block;
        geometry->rotational = block_device_is_rotational(opening->stat.st_dev);
        geometry->discard_granularity = block;
        geometry->max_discard_size = punch ? DISCARD_MAX : 0;
        geometry->max_write_zeroes_size = punch ? DISCARD_MAX : WRITTEN_ZEROES_MAX;
}

/* With direct I/O the pages of a request go down as they are. A file system may ask for more than its disk.
 */
static void place_geometry_of(const struct opening *opening, struct target_geometry *geometry)
{
        dev_t number = is_disk(opening) ? opening->stat.st_rdev : opening->stat.st_dev;
        struct page_limits limits = block_device_page_limits(number);

        geometry->prefers_zero_copy =
                opening->direct && !is_in_memory(opening); /* O_DIRECT has no effect in memory */
        geometry->dma_alignment =
                limits.dma_alignment > opening->memory_align ? limits.dma_alignment : opening->memory_align;
        geometry->max_segment_size = limits.max_segment_size;
        geometry->max_segments = limits.max_segments;
}

/* How much of the store belongs to the disk. Below another target a store without a length is the disk's to its end, wherever that
 * comes to be: the tree grows with it. */
static uint64_t size_to_claim(const struct opening *opening, uint64_t size)
{
        const struct target_device *device = opening->device;
        uint64_t first = device->wanted_offset;

        if (device->wanted_size != 0)
                return device->wanted_size;
        if (device->is_below)
                return INT64_MAX - opening->options->offset - first;
        return size > first ? size - first : 0;
}

/* Finds out on what it lies, and who else uses that. size: bytes, what the store offers. */
static int claim_store(const struct opening *opening, uint64_t size, struct target_geometry *geometry)
{
        const struct target_device *device = opening->device;
        uint64_t first = device->wanted_offset;
        const struct backing_stack stack = {
                .path = opening->options->path,
                .size = size_to_claim(opening, size),
                .writes = !device->read_only,
                .claims = &geometry->claims,
                .sharing = &geometry->sharing,
        };
        int r = backing_stack_walk(&stack, opening->fd, opening->options->offset + first);

        return r < 0 ? r : backing_users_find(&geometry->claims, stack.path, &geometry->sharing);
}

/* Fills what loop.c works with. */
static int make_state(const struct opening *opening)
{
        struct loop_device *loop = opening->device->state;
        void *zeroes =
                mmap(NULL, LOOP_ZEROES_SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (zeroes == MAP_FAILED)
                return -errno;
        loop->offset = opening->options->offset;
        loop->zeroes = zeroes;
        atomic_init(&loop->refused, 0);
        return 0;
}

int loop_measure(struct target_device *device, uint64_t *ret)
{
        const struct loop_device *loop = device->state;
        off_t end = lseek(
                device->files[LOOP_FILE], 0, SEEK_END); /* of files and of disks; no code uses the position */

        if (end < 0)
                return -errno;
        note_end(device, (uint64_t)end, device->store.inode == 0);
        *ret = (uint64_t)end > loop->offset ? (uint64_t)end - loop->offset : 1; /* less than any block */
        return 0;
}

/* The disk is served all the same when memory runs out for the advice. */
static void advise_path(const struct opening *opening, struct target_geometry *geometry)
{
        const char *path = opening->options->path;

        /* A recovery follows no path that could hang: those in /dev cannot. */
        if (!is_disk(opening) || (opening->device->store.as_given && strncmp(path, "/dev/", 5) != 0))
                return;
        geometry->path_may_change = stable_name_is_wanted(path);
        if (geometry->path_may_change)
                (void)stable_name_find("/dev", &opening->stat, &geometry->stable_path);
}

static void measure_geometry(const struct opening *opening, struct target_geometry *geometry)
{
        if (is_disk(opening))
                disk_geometry_of(opening, geometry);
        else
                file_geometry_of(opening, geometry);
        place_geometry_of(opening, geometry);
}

/* Hand the open store to the device. fd, kept: taken over. */
static void give_store(const struct opening *opening, int fd, int kept)
{
        struct target_device *device = opening->device;

        device->files[LOOP_FILE] = fd;
        device->files[LOOP_KEPT] = device->store.kept = kept;
        device->file_count = 2;
        device->linear = true;
        device->linear_file = LOOP_FILE;
        device->linear_end_known = is_end_known(opening);
        device->linear_in_memory = is_in_memory(opening);
        device->io_ends_with_process = device->linear_in_memory;
}

int loop_open(struct target_device *device, struct target_geometry *ret, struct problem_list *problems)
{
        struct opening opening = {
                .device = device, .options = device->config, .problems = problems, .fd = -1};
        struct target_geometry geometry = {.volatile_cache = true};
        _cleanup_close_ int fd = -1, kept = -1;
        int r;

        r = open_file(&opening);
        fd = opening.fd;
        kept = TAKE_FD(device->store.kept);
        if (r < 0)
                return r;
        r = check_size(&opening, &geometry.size);
        if (r >= 0)
                r = check_offset(&opening);
        if (r < 0)
                return r;
        r = choose_direct(&opening);
        if (r < 0)
                return r;
        leave_access_time(fd);
        measure_geometry(&opening, &geometry);
        r = claim_store(&opening, geometry.size, ret);
        if (r >= 0)
                r = make_state(&opening);
        if (r < 0)
                return r;
        advise_path(&opening, &geometry);
        geometry.claims = ret->claims;
        geometry.sharing = ret->sharing;
        give_store(&opening, TAKE_FD(fd), TAKE_FD(kept));
        *ret = geometry;
        return 0;
}
