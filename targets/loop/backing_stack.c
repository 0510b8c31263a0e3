/* SPDX-License-Identifier: MIT */
/* From an open backing store down to the leaves. */
#include "targets/loop/backing_stack.h"

#include "targets/loop/block_device.h"
#include "targets/loop/loop_node.h"
#include "targets/loop/overlay_layer.h"
#include "targets/loop/sys_block.h"
#include "ublkd/base/sentence.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

enum { DEPTH_MAX = 16 };

/* Where the range lies in the store that is being looked at. */
struct place {
        uint64_t start, end; /* bytes */
        bool mapped;         /* as in struct backing_claim */
        unsigned depth;
};

static const struct place anywhere = {.end = UINT64_MAX, .mapped = true};

static uint64_t add(uint64_t one, uint64_t other)
{
        uint64_t sum;

        return __builtin_add_overflow(one, other, &sum) ? UINT64_MAX : sum;
}

/* The same range, seen from the store below, where this one begins at `start` and has at most `size_max`
 * bytes (0: no limit). */
static struct place below(const struct place *place, uint64_t start, uint64_t size_max)
{
        struct place lower = *place;

        lower.start = add(place->start, start);
        lower.end = add(place->end, start);
        if (size_max != 0 && lower.end > add(start, size_max))
                lower.end = add(start, size_max);
        lower.depth++;
        return lower;
}

/* ---- what is found ---- */

/* Each sentence once. */
static int add_sharing(const struct backing_stack *stack, int error, const char *reason, const char *sentence)
{
        if (!stack->sharing)
                return 0;
        for (size_t i = 0; i < stack->sharing->count; i++)
                if (sentence_equal(stack->sharing->items[i].detail, sentence))
                        return 0;
        return problem_add(stack->sharing, error, "/target/path", reason, "%s", sentence);
}

static int unknown(const struct backing_stack *stack, const char *what)
{
        _cleanup_free_ char *sentence = NULL;

        if (asprintf(&sentence,
                    "%s %s. ublkd does not know whether other programs write to the same bytes; make sure "
                    "that none does.",
                    stack->path, what)
                < 0)
                return -ENOMEM;
        return add_sharing(stack, 0, "BackingShareUnknown", sentence);
}

/* Returns 0 or -ENOMEM: the walk goes on elsewhere, and what was found holds. */
static int unreadable(const struct backing_stack *stack, int error, const char *what)
{
        _cleanup_free_ char *sentence = NULL;

        if (error == ENOMEM)
                return -ENOMEM;
        if (asprintf(&sentence,
                    "What %s lies on cannot be found out: %s: %s; correct that, or use another backing "
                    "store.",
                    stack->path, what, strerror(error))
                < 0)
                return -ENOMEM;
        return add_sharing(stack, error, "BackingStackUnreadable", sentence);
}

/* 1: it is new; 0: it was there, and so is all below it; -ENOMEM. */
static int claim(const struct backing_stack *stack, const char *key, const struct place *place)
{
        size_t count = stack->claims->count;
        int r = backing_claims_add(stack->claims, &(struct backing_claim){.key = (char *)key,
                                                          .start = place->start,
                                                          .end = place->end,
                                                          .writes = stack->writes,
                                                          .mapped = place->mapped});

        if (r == -E2BIG)
                r = unknown(stack, "lies on more disks than ublkd keeps in mind");
        return r < 0 ? r : stack->claims->count > count;
}

static int too_deep(const struct backing_stack *stack)
{
        return unreadable(stack, ELOOP, "its disks are stacked too high");
}

/* ---- files ---- */

static int walk_file(const struct backing_stack *stack, int fd, const struct place *place);

static int walk_overlay(const struct backing_stack *stack, int fd, const struct place *place)
{
        struct place lower = below(place, 0, 0);
        _cleanup_close_ int layer = -1;
        int r = overlay_layer_find(fd, &layer);

        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return unknown(stack, "lies on an overlay whose layers cannot be looked at");
        return walk_file(stack, layer, &lower);
}

static int walk_elsewhere(
        const struct backing_stack *stack, int fd _unused_, const struct place *place _unused_)
{
        return unknown(stack, "lies on a file system whose server knows its bytes under other names, too");
}

/* Those that do not hold a file's bytes themselves, or not alone. */
static const struct {
        uint32_t type; /* as statfs() returns it */
        int (*walk)(const struct backing_stack *stack, int fd, const struct place *place);
} file_systems[] = {
        {OVERLAYFS_SUPER_MAGIC, walk_overlay  },
        {FUSE_SUPER_MAGIC,      walk_elsewhere}, /* virtiofs too */
        {NFS_SUPER_MAGIC,       walk_elsewhere},
        {SMB_SUPER_MAGIC,       walk_elsewhere},
        {CIFS_SUPER_MAGIC,      walk_elsewhere},
        {SMB2_SUPER_MAGIC,      walk_elsewhere},
        {CEPH_SUPER_MAGIC,      walk_elsewhere},
        {V9FS_MAGIC,            walk_elsewhere},
        {AFS_SUPER_MAGIC,       walk_elsewhere},
        {AFS_FS_MAGIC,          walk_elsewhere},
        {CODA_SUPER_MAGIC,      walk_elsewhere},
        {OCFS2_SUPER_MAGIC,     walk_elsewhere},
        {ECRYPTFS_SUPER_MAGIC,  walk_elsewhere},
        {0x01161970 /* gfs2 */, walk_elsewhere},
};

static int walk_file_system(const struct backing_stack *stack, int fd, const struct place *place)
{
        struct statfs info;

        if (fstatfs(fd, &info) < 0)
                return unreadable(stack, errno, "its file system");
        for (size_t i = 0; i < ARRAY_SIZE(file_systems); i++)
                if ((uint32_t)info.f_type == file_systems[i].type)
                        return file_systems[i].walk(stack, fd, place);
        return 0;
}

static int claim_file(
        const struct backing_stack *stack, dev_t device, uint64_t inode, const struct place *place)
{
        char key[96];

        snprintf(key, sizeof(key), "file:%u:%u:%" PRIu64, major(device), minor(device), inode);
        return claim(stack, key, place);
}

static int walk_file(const struct backing_stack *stack, int fd, const struct place *place)
{
        struct stat info;
        int r;

        if (place->depth > DEPTH_MAX)
                return too_deep(stack);
        if (fstat(fd, &info) < 0)
                return unreadable(stack, errno, "a file");
        r = claim_file(stack, info.st_dev, info.st_ino, place);
        return r <= 0 ? r : walk_file_system(stack, fd, place);
}

/* ---- disks ---- */

static int walk_disk(const struct backing_stack *stack, dev_t number, const struct place *place);

/* A loop device does not claim the disk that it is on. */
static int check_claimed(const struct backing_stack *stack, dev_t number)
{
        _cleanup_free_ char *sentence = NULL;
        _cleanup_close_ int fd = -1;

        if (!stack->writes || sys_block_open_node(number, O_RDONLY | O_EXCL, &fd) != -EBUSY)
                return 0;
        if (asprintf(&sentence,
                    "The disk %u:%u below %s is in use: it is mounted, or part of another device; set "
                    "readOnly, or free it.",
                    major(number), minor(number), stack->path)
                < 0)
                return -ENOMEM;
        return add_sharing(stack, EBUSY, "BackingInUse", sentence);
}

/* Its file may be gone, or have another name in this namespace. */
static int walk_loop_file(const struct backing_stack *stack, dev_t number, const struct loop_backing *backing,
        const struct place *place)
{
        _cleanup_close_ int fd = -1;
        int r = loop_node_open_file(number, backing, &fd);

        if (r == -ENOMEM)
                return r;
        if (r >= 0)
                return walk_file(stack, fd, place);
        r = claim_file(stack, backing->device, backing->inode, place);
        return r <= 0 ? r : unknown(stack, "lies on a loop device whose file cannot be found by its name");
}

static int walk_loop(const struct backing_stack *stack, dev_t number, const struct place *place)
{
        struct loop_backing backing;
        struct place lower;
        int r = loop_node_read(number, &backing);

        if (r < 0)
                return unreadable(stack, -r, "a loop device");
        lower = below(place, backing.start, backing.size_max);
        if (backing.disk == 0)
                return walk_loop_file(stack, number, &backing, &lower);
        r = check_claimed(stack, backing.disk);
        return r < 0 ? r : walk_disk(stack, backing.disk, &lower);
}

/* What is known of a disk by the name of its driver. */
static bool is_remote(dev_t number)
{
        static const char *const drivers[] = {"nbd", "rbd", "drbd", "etherd"};
        char link[PATH_MAX], path[64];
        const char *name;
        ssize_t n;

        snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major(number), minor(number));
        n = readlink(path, link, sizeof(link) - 1);
        link[n > 0 ? n : 0] = '\0';
        name = strrchr(link, '/');
        for (size_t i = 0; name && i < ARRAY_SIZE(drivers); i++)
                if (strncmp(name + 1, drivers[i], strlen(drivers[i])) == 0)
                        return true;
        return false;
}

struct slaves {
        const struct backing_stack *stack;
        unsigned depth, count;
};

static int walk_slave(void *userdata, dev_t number)
{
        struct slaves *slaves = userdata;
        struct place place = anywhere;

        slaves->count++;
        place.depth = slaves->depth;
        return walk_disk(slaves->stack, number, &place);
}

static int walk_slaves(const struct backing_stack *stack, dev_t number, const struct place *place)
{
        struct slaves slaves = {.stack = stack, .depth = place->depth + 1};
        int r = sys_block_each_slave(number, walk_slave, &slaves);

        if (r < 0)
                return unreadable(stack, -r, "the disks below a disk");
        if (slaves.count > 0 || !is_remote(number))
                return 0;
        return unknown(stack, "lies on a disk of another machine");
}

/* A partition lies in its disk. */
static struct place place_in_disk(dev_t number, const struct place *place, dev_t *ret_disk)
{
        char size[32];
        uint64_t start;

        block_device_place(number, ret_disk, &start);
        if (*ret_disk == number)
                return *place;
        if (!sys_block_attribute(number, "size", size, sizeof(size)))
                size[0] = '\0';
        return below(place, start, strtoull(size, NULL, 10) * 512);
}

static int walk_disk(const struct backing_stack *stack, dev_t number, const struct place *place)
{
        dev_t disk;
        struct place whole = place_in_disk(number, place, &disk);
        char key[64];
        int r;

        if (place->depth > DEPTH_MAX)
                return too_deep(stack);
        snprintf(key, sizeof(key), "disk:%u:%u", major(disk), minor(disk));
        r = claim(stack, key, &whole);
        if (r <= 0)
                return r;
        return is_loop_device(disk) ? walk_loop(stack, disk, &whole) : walk_slaves(stack, disk, &whole);
}

/* ---- from above ---- */

int backing_stack_walk(const struct backing_stack *stack, int fd, uint64_t start)
{
        struct place place = {.start = start, .end = add(start, stack->size)};
        struct stat info;

        if (fstat(fd, &info) < 0)
                return -errno;
        return S_ISBLK(info.st_mode) ? walk_disk(stack, info.st_rdev, &place) : walk_file(stack, fd, &place);
}

int backing_stack_walk_loop(const struct backing_stack *stack, dev_t number)
{
        struct loop_backing backing;
        struct place whole = {.end = UINT64_MAX}, lower;
        int r = loop_node_read(number, &backing);

        if (r < 0)
                return r;
        lower = below(&whole, backing.start, backing.size_max);
        return backing.disk != 0 ? walk_disk(stack, backing.disk, &lower)
                                 : walk_loop_file(stack, number, &backing, &lower);
}
