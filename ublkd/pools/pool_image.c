/* SPDX-License-Identifier: MIT */
/* Images of pools. */
#include "ublkd/pools/pool_image.h"

#include "ublkd/backing/file_identity.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/base/fd_path.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

/* Only root sees and sets it. */
#define SIZE_ATTRIBUTE "trusted.ublkd.size"

struct work {
        const struct pool_image *image;
        int directory;
        const char *name; /* in it */
        char *sentence;
};

static void close_work(struct work *work)
{
        close_fd(work->directory);
}

/* ---- sentences ---- */

/* Write the sentence. Return -error. */
static _printf_(3, 4) int fail(struct work *work, int error, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        (void)vsnprintf(work->sentence, POOL_SENTENCE_MAX, format, arguments);
        va_end(arguments);
        return -error;
}

/* what: an infinitive. */
static int fail_as(struct work *work, int error, const char *what)
{
        /* clang-format off */
        static const struct {
                int error;
                const char *todo;
        } table[] = {
                {ENOSPC, "make room in its file system"},
                {EDQUOT, "raise the quota of root there, or make room"},
                {EROFS, "mount its file system for writing"},
                {EFBIG, "give a smaller size, or move the pool to a file system with larger files"},
                {EOPNOTSUPP, "move the pool to a file system with unnamed files (O_TMPFILE), such as ext4, xfs or btrfs"},
                {EPERM, "check the attributes of the image and of the directory (lsattr)"},
        };
        /* clang-format on */
        const char *todo = "check the file system";

        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (table[i].error == error)
                        todo = table[i].todo;
        return fail(work, error, "The image %s cannot be %s: %s; %s.", work->image->path, what,
                strerror(error), todo);
}

/* ---- the directory ---- */

static int fail_directory(struct work *work, int error, const char *directory)
{
        if (error == ENOENT)
                return fail(work, ENOENT,
                        "The directory %s of the pool does not exist; create it as root, or mount its file "
                        "system.",
                        directory);
        if (error == ENOTDIR || error == ELOOP)
                return fail(work, ENOTDIR,
                        "%s of the pool is a link or no directory; give the directory itself in the policy.",
                        directory);
        return fail(work, error, "The directory %s of the pool cannot be opened: %s; check its file system.",
                directory, strerror(error));
}

/* Open the directory, and check that only root makes files there: by tests, the user that ublkd runs as. */
static int open_work(const struct pool_image *image, char *sentence, struct work *ret)
{
        const char *slash = strrchr(image->path, '/');
        char directory[PATH_MAX];
        struct stat info;

        *ret = (struct work){.image = image, .directory = -1, .sentence = sentence};
        if (!slash || !slash[1] || (size_t)(slash - image->path) >= sizeof(directory))
                return fail(ret, EINVAL, "The path of the image is not one of a file; replace the spec.");
        ret->name = slash + 1;
        snprintf(directory, sizeof(directory), "%.*s", slash == image->path ? 1 : (int)(slash - image->path),
                image->path);
        ret->directory = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (ret->directory < 0 || fstat(ret->directory, &info) < 0)
                return fail_directory(ret, errno, directory);
        if (info.st_uid != geteuid())
                return fail(ret, EACCES,
                        "The directory %s of the pool does not belong to root; correct that ('chown root').",
                        directory);
        if (info.st_mode & (S_IWGRP | S_IWOTH))
                return fail(ret, EACCES,
                        "The directory %s of the pool can be written by others than root; correct that "
                        "('chmod go-w').",
                        directory);
        return 0;
}

static int sync_directory(struct work *work)
{
        return fsync(work->directory) < 0 ? fail_as(work, errno, "made to last") : 0;
}

/* ---- the file ---- */

static int fail_other(struct work *work, const char *what)
{
        return fail(work, ESTALE,
                "%s is %s and not the image that ublkd has made; move it away, or put the image back.",
                work->image->path, what);
}

/* Open the file of the name without following or starting anything. Return a descriptor with O_PATH; -ENOENT: there is
 * none, without a sentence; -ESTALE: it is not the image; other -errno. */
static int find_image(struct work *work, bool alone, struct stat *ret)
{
        _cleanup_close_ int fd = openat(work->directory, work->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        const struct backing_identity *is = work->image->is;
        struct backing_identity found;

        if (fd < 0 && errno == ENOENT)
                return -ENOENT;
        if (fd < 0 || fstat(fd, ret) < 0)
                return fail_as(work, errno, "found");
        if (!S_ISREG(ret->st_mode))
                return fail_other(work, "no regular file");
        if (!backing_identity_is_empty(is)) {
                file_identify(fd, ret, &found);
                if (backing_compare(is, &found, work->image->same_boot) == BACKING_OTHER)
                        return fail_other(work, "another file");
        } else if (ret->st_uid != geteuid())
                return fail_other(work, "a file of another user");
        if (alone && ret->st_nlink != 1)
                return fail_other(work, "a file with several names");
        return TAKE_FD(fd);
}

static int reopen(struct work *work, int path_fd)
{
        int fd = open(fd_path(path_fd).text, O_RDWR | O_CLOEXEC);

        return fd < 0 ? fail_as(work, errno, "opened") : fd;
}

/* A file system without attributes, or a test without the right to set them: the size is not known later. */
static void note_size(int fd, uint64_t size)
{
        char text[24];
        int n = snprintf(text, sizeof(text), "%" PRIu64, size);

        (void)fsetxattr(fd, SIZE_ATTRIBUTE, text, (size_t)n, 0);
}

/* Return the size that ublkd gave the image last; 0: unknown. */
static uint64_t noted_size(int fd)
{
        char text[24];
        ssize_t n = fgetxattr(fd, SIZE_ATTRIBUTE, text, sizeof(text) - 1);

        if (n <= 0)
                return 0;
        text[n] = '\0';
        return strtoull(text, NULL, 10);
}

/* The size lasts before its note: a note that is too large would make a whole image one that was cut off. */
static int set_size(struct work *work, int fd, uint64_t size)
{
        if (ftruncate(fd, (off_t)size) < 0 || fsync(fd) < 0)
                return fail_as(work, errno, "given its size");
        note_size(fd, size);
        return fsync(fd) < 0 ? fail_as(work, errno, "given its size") : 0;
}

/* ---- making ---- */

static int make(struct work *work, uint64_t size)
{
        _cleanup_close_ int fd = openat(work->directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        int r;

        if (fd < 0)
                return fail_as(work, errno == EISDIR ? EOPNOTSUPP : errno, "made");
        r = set_size(work, fd, size);
        if (r < 0)
                return r;
        if (linkat(AT_FDCWD, fd_path(fd).text, work->directory, work->name, AT_SYMLINK_FOLLOW) < 0)
                return fail_as(work, errno, "made");
        r = sync_directory(work);
        return r < 0 ? r : 1;
}

/* An earlier try may have died before its name was sure to last. */
static int take(struct work *work, int found, uint64_t has, uint64_t size)
{
        _cleanup_close_ int fd = reopen(work, found);
        int r = fd < 0 ? fd : has < size ? set_size(work, fd, size) : 0;

        return r < 0 ? r : sync_directory(work);
}

int pool_image_make(const struct pool_image *image, uint64_t size, char sentence[static POOL_SENTENCE_MAX])
{
        _cleanup_(close_work) struct work work;
        _cleanup_close_ int found = -1;
        int r = open_work(image, sentence, &work);
        struct stat info;

        if (r < 0)
                return r;
        found = find_image(&work, true, &info);
        if (found == -ENOENT)
                return make(&work, size);
        return found < 0 ? found : take(&work, found, (uint64_t)info.st_size, size);
}

/* ---- growing ---- */

static int grow(struct work *work, int found, uint64_t has, uint64_t least, uint64_t size)
{
        _cleanup_close_ int fd = reopen(work, found);

        if (fd < 0)
                return fd;
        if (least == 0)
                least = noted_size(fd);
        if (least == 0)
                return fail(work, ENODATA,
                        "The image %s is not grown without its disk: it does not say how large it was; grow "
                        "it ('truncate -s %" PRIu64 "') if it was not cut off.",
                        work->image->path, size);
        if (has < least)
                return fail(work, ENODATA,
                        "The image %s was cut off: it has %" PRIu64 " bytes, and had %" PRIu64
                        "; restore it from a copy: what is only grown reads as zeroes.",
                        work->image->path, has, least);
        return set_size(work, fd, size);
}

int pool_image_grow(const struct pool_image *image, uint64_t least, uint64_t size,
        char sentence[static POOL_SENTENCE_MAX])
{
        _cleanup_(close_work) struct work work;
        _cleanup_close_ int found = -1;
        int r = open_work(image, sentence, &work);
        struct stat info;

        if (r < 0)
                return r;
        found = find_image(&work, false, &info);
        if (found == -ENOENT)
                return fail(&work, ENOENT, "The image %s does not exist; put it back.", image->path);
        if (found < 0)
                return found;
        return (uint64_t)info.st_size >= size ? 0 : grow(&work, found, (uint64_t)info.st_size, least, size);
}

/* ---- removing ---- */

int pool_image_remove(const struct pool_image *image, char sentence[static POOL_SENTENCE_MAX])
{
        _cleanup_(close_work) struct work work;
        _cleanup_close_ int found = -1;
        int r = open_work(image, sentence, &work);
        struct stat info;

        if (r < 0)
                return r;
        found = find_image(&work, false, &info);
        if (found < 0 && found != -ENOENT)
                return found;
        if (found >= 0 && unlinkat(work.directory, work.name, 0) < 0 && errno != ENOENT)
                return fail_as(&work, errno, "deleted");
        r = sync_directory(&work);
        return r < 0 ? r : found >= 0;
}
