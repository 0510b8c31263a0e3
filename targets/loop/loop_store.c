/* SPDX-License-Identifier: MIT */
/* Opening the backing store of a loop target: the very one that the disk was made on, or nothing.
 *
 * A path is followed once, to a descriptor that can do nothing yet (O_PATH). What it is, and whether it is
 * the store that is expected, is asked of that descriptor, and both descriptors that are used are opened
 * through it: nothing can come in between. A worker that gets the store from the one before it follows no
 * path at all.
 *
 * The store of a user is a regular file of this user. All of this then happens with the rights of the user
 * (user_rights.h), also for a store that is given: a right that was taken away ends the use of the file with the
 * worker that serves it.
 *
 * Two descriptors, because two things have to live differently long: the one for I/O ends with this worker's
 * last request; the other one, `kept`, has the lock on the bytes of the disk, and of a block device that is
 * written to the exclusive claim (O_EXCL: the kernel refuses mkfs and mount then, as on a mounted
 * disk). */
#include "targets/loop/loop_store.h"

#include "targets/loop/pseudo_files.h"
#include "targets/loop/store_identity.h"
#include "targets/loop/user_path.h"
#include "targets/loop/user_rights.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/base/fd_path.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

struct store_opening {
        struct target_device *device;
        const struct loop_options *options;
        struct problem_list *problems;
};

/* Return whether there was a disk on the store before: what the administrator is to do must not cost its data. */
static bool has_disk(const struct target_device *device)
{
        return device->store.served || !backing_identity_is_empty(&device->store.expected);
}

/* `lost`: what to do where a disk with data on that store is there already; NULL: the same. */
/* clang-format off */
static const struct {
        int error;
        const char *reason, *what, *lost;
} faults[] = {
        {ENOENT, "BackingFileMissing", .what = "does not exist; create it, or correct path",
                .lost = "does not exist; put the file back that this disk was made on, or, once the disk is unmounted, "
                        "change the path in the spec to where it is"},
        {ENOTDIR, "BackingFileMissing", .what = "does not exist, a part of the path is not a directory; correct path"},
        {EACCES, "BackingFileNotPermitted", .what = "may not be opened; check its mode and those of its directories"},
        {EPERM, "BackingFileNotPermitted",
                .what = "may not be written, it is immutable or sealed; lift that (chattr -i), or set readOnly"},
        {EROFS, "BackingFileReadOnly", .what = "cannot be written, its file system is read-only; set readOnly, or remount it"},
        {ETXTBSY, "BackingFileBusy", .what = "is in use as swap space or as a running program; end that, or use another file"},
        {EBUSY, "BackingFileBusy", .what = "is in use: mounted, or part of another device; set readOnly, or free it"},
        {ELOOP, "BackingFileMissing", .what = "leads through too many symbolic links; correct path"},
        {ENXIO, "BackingFileMissing", .what = "is a device node without a device behind it; correct path, or attach the device"},
        {ENODEV, "BackingFileMissing", .what = "is a device node without a device behind it; correct path, or attach the device"},
        {EWOULDBLOCK, "BackingFileUnusable", 
         .what = "has a lease of a process (fcntl F_SETLEASE), for whose end the disk would wait; end that process"},
        {ENOMEDIUM, "BackingFileMissing", .what = "is a drive without a medium; insert one, or correct path"},
};
/* clang-format on */

int loop_store_fault(const struct target_device *device, const struct loop_options *options, int error,
        struct problem_list *problems)
{
        const char *reason = "BackingFileUnusable", *what = NULL;
        int r;

        for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
                if (faults[i].error == error) {
                        reason = faults[i].reason;
                        what = has_disk(device) && faults[i].lost ? faults[i].lost : faults[i].what;
                }
        if (what)
                r = problem_add(problems, error, "/target/path", reason, "%s %s.", options->path, what);
        else
                r = problem_add(problems, error, "/target/path", reason, "%s cannot be opened: %s.",
                        options->path, strerror(error));
        return r < 0 ? r : -error;
}

static int fault(const struct store_opening *opening, int error)
{
        return loop_store_fault(opening->device, opening->options, error, opening->problems);
}

static int check_kind(const struct store_opening *opening, const struct stat *stat)
{
        int r;

        if (S_ISREG(stat->st_mode) || S_ISBLK(stat->st_mode))
                return 0;
        r = problem_add(opening->problems, S_ISDIR(stat->st_mode) ? EISDIR : EINVAL, "/target/path",
                "BackingFileUnsuitable", "%s is %s; a loop target needs a regular file or a block device.",
                opening->options->path,
                S_ISDIR(stat->st_mode)   ? "a directory"
                : S_ISCHR(stat->st_mode) ? "a character device"
                                         : "neither a file nor a disk");
        return r < 0 ? r : -EINVAL;
}

/* accept-backing would have nothing to name. */
static int refuse_unknown(const struct store_opening *opening)
{
        const struct backing_identity *expected = &opening->device->store.expected;

        return problem_add(opening->problems, ESTALE, "/target/path", "BackingChanged",
                "%s has no identity, so it cannot be recognised as the store of this disk, which is on %s "
                "(%s). Put that store back at this path, or give the device the path where it is now. "
                "accept-backing cannot name a store without an identity; to go on with this store, change "
                "the target of the device.",
                opening->options->path, backing_identity_text(expected),
                backing_basis_to_string(expected->basis));
}

/* Both identities, and what to do; to give the old store up comes last. */
static int refuse_other(const struct store_opening *opening)
{
        const struct backing_identity *found = &opening->device->store.found,
                                      *expected = &opening->device->store.expected;
        const char *text = backing_identity_text(found);
        int r;

        if (!*text)
                r = refuse_unknown(opening);
        else if (opening->device->store.is_one_of_several) /* the supervisor knows its pointer */
                r = problem_add(opening->problems, ESTALE, "/target/path", "BackingChanged",
                        "%s is not the store of this disk in this place: it is %s (%s), the disk is on %s "
                        "(%s). Put that store back at this path, or give its present path here.",
                        opening->options->path, text, backing_basis_to_string(found->basis),
                        backing_identity_text(expected), backing_basis_to_string(expected->basis));
        else
                r = problem_add(opening->problems, ESTALE, "/target/path", "BackingChanged",
                        "%s is not the store of this disk: it is %s (%s), the disk is on %s (%s). Put that "
                        "store back at this path, and the disk goes on. Or unmount the disk, and set the "
                        "path in the spec to where that store is. To give that store up, unmount the disk, "
                        "then: ublkctl recover %s --accept-backing '%s' (in the API: accept-backing).",
                        opening->options->path, text, backing_basis_to_string(found->basis),
                        backing_identity_text(expected), backing_basis_to_string(expected->basis),
                        opening->device->name ? opening->device->name : "NAME", text);
        return r < 0 ? r : -ESTALE;
}

static void note_place(struct target_store *store, const struct stat *stat)
{
        dev_t number = S_ISBLK(stat->st_mode) ? stat->st_rdev : stat->st_dev;

        store->major = major(number);
        store->minor = minor(number);
        store->inode = S_ISBLK(stat->st_mode) ? 0 : stat->st_ino;
}

static int check_identity(const struct store_opening *opening, int fd, const struct stat *stat)
{
        struct target_store *store = &opening->device->store;

        note_place(store, stat);
        if (backing_identity_is_empty(&store->expected))
                return 0;
        store_identify(fd, stat, &store->found);
        return backing_compare(&store->expected, &store->found, store->expected_in_this_boot) == BACKING_OTHER
                       ? refuse_other(opening)
                       : 0;
}

/* Another open file description of what `fd` refers to, or -errno. */
static int reopen(int fd, int flags)
{
        int r = open(fd_path(fd).text, flags | O_CLOEXEC | O_NOCTTY);

        return r < 0 ? -errno : r;
}

/* The same for a store that is opened for a user: the open does not wait for the lease of a process (fcntl(2), F_SETLEASE),
 * and fails with -EWOULDBLOCK. I/O is as without O_NONBLOCK. */
static int reopen_for(const struct store_opening *opening, int fd, int flags)
{
        _cleanup_close_ int opened = -1;

        if (opening->device->store.user == 0)
                return reopen(fd, flags);
        opened = reopen(fd, flags | O_NONBLOCK);
        if (opened < 0)
                return opened;
        return fcntl(opened, F_SETFL, 0) < 0 ? -errno : TAKE_FD(opened);
}

static int access_mode(const struct target_device *device)
{
        return device->read_only ? O_RDONLY : O_RDWR;
}

/* To write to a disk that is mounted, or belongs to a RAID or a volume group, would destroy it: the kernel
 * knows who claimed it, and keeps the others off ours from here on. */
static int open_kept(const struct store_opening *opening, int path, bool is_disk)
{
        struct target_store *store = &opening->device->store;
        int mode = access_mode(opening->device), fd;

        store->claimed = is_disk && mode == O_RDWR;
        fd = reopen_for(opening, path, mode | (store->claimed ? O_EXCL : 0));
        if (fd == -EBUSY && store->claimed && store->shared) {
                store->claimed = false;
                fd = reopen_for(opening, path, mode);
        }
        return fd;
}

static int find_path(const struct store_opening *opening)
{
        const char *path = opening->options->path;
        int fd;

        if (opening->device->store.user > 0)
                return user_path_open(path, opening->problems);
        fd = open(path, O_PATH | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int check_file_of_user(const struct store_opening *opening, const struct stat *stat)
{
        return user_path_check_file(
                stat, opening->device->store.user, opening->options->path, opening->problems);
}

/* The identity of a file that the user may not read would be that of another file. */
static int check_user(const struct store_opening *opening, int path)
{
        _cleanup_close_ int fd = reopen_for(opening, path, access_mode(opening->device));

        return fd < 0 ? fault(opening, -fd) : 0;
}

static int open_path(const struct store_opening *opening, struct stat *ret_stat)
{
        struct target_store *store = &opening->device->store;
        _cleanup_close_ int path = find_path(opening), kept = -1;
        int fd, r;

        if (path < 0)
                return opening->problems->count > 0 ? path : fault(opening, -path);
        if (fstat(path, ret_stat) < 0)
                return fault(opening, errno);
        r = store->user > 0 ? check_file_of_user(opening, ret_stat) : check_kind(opening, ret_stat);
        if (r >= 0)
                r = pseudo_files_refuse(path, opening->options->path, opening->problems);
        if (r >= 0 && store->user > 0)
                r = check_user(opening, path);
        if (r >= 0)
                r = check_identity(opening, path, ret_stat);
        if (r < 0)
                return r;
        kept = open_kept(opening, path, S_ISBLK(ret_stat->st_mode));
        if (kept < 0) {
                store_identify(
                        path, ret_stat, &store->found); /* of which another disk of ours may be the user */
                return fault(opening, -kept);
        }
        /* Again: an overlay has another file below the name once it was opened for writing. */
        if (fstat(kept, ret_stat) < 0)
                return fault(opening, errno);
        store_identify(kept, ret_stat, &store->found);
        fd = reopen_for(opening, kept, access_mode(opening->device));
        if (fd < 0)
                return fault(opening, -fd);
        store->kept = TAKE_FD(kept);
        return fd;
}

/* The store is the right one by where it comes from, and nothing is compared: an identity that cannot be read for a
 * moment, or that the file system changes, would be that of another store. The supervisor, which orders the descriptors of
 * a list, knows their numbers. */
static int open_given(const struct store_opening *opening, struct stat *ret_stat)
{
        struct target_store *store = &opening->device->store;
        _cleanup_close_ int given = TAKE_FD(store->given);
        int fd = reopen_for(opening, given, access_mode(opening->device));

        if (fd < 0)
                return fd;
        if (fstat(fd, ret_stat) < 0) {
                close_fd(fd);
                return -errno;
        }
        if (store->user > 0 && check_file_of_user(opening, ret_stat) < 0) {
                close_fd(fd);
                return -EACCES;
        }
        note_place(store, ret_stat);
        store->found = store->expected;
        store->as_given = true;
        store->claimed = S_ISBLK(ret_stat->st_mode) && !opening->device->read_only && !store->shared;
        store->kept = TAKE_FD(given);
        return fd;
}

/* The device or the file system behind the descriptor was taken away. It may be back, as another one in the
 * kernel's eyes. Requests of a disk that exists may still be in flight on the dead file system: only a new disk
 * goes on with the next mount of it. */
static bool is_dead(const struct target_store *store, int error)
{
        if (error == -EIO || error == -ESTALE)
                return !store->served;
        return error == -ENXIO || error == -ENODEV || error == -ENOMEDIUM;
}

/* The given store, or what the path leads to. Return a descriptor for I/O; -errno with a problem; -ENOMEM. */
static int open_store(const struct store_opening *opening, struct stat *ret_stat)
{
        const struct target_store *store = &opening->device->store;
        int fd = store->given < 0 ? -ENODEV : open_given(opening, ret_stat);

        if (is_dead(store, fd))
                return open_path(opening, ret_stat);
        return fd >= 0 || opening->problems->count > 0 ? fd : fault(opening, -fd);
}

struct user_opening {
        const struct store_opening *opening;
        struct stat *ret_stat;
        bool has_run;
};

static int open_as_user(void *userdata)
{
        struct user_opening *as_user = userdata;

        as_user->has_run = true;
        return open_store(as_user->opening, as_user->ret_stat);
}

static int run_as_user(const struct store_opening *opening, struct stat *ret_stat)
{
        struct user_opening as_user = {.opening = opening, .ret_stat = ret_stat};
        uid_t user = opening->device->store.user;
        int r = user_rights_run(user, NULL, open_as_user, &as_user), added;

        if (r >= 0 || as_user.has_run || r == -ENOMEM)
                return r;
        added = problem_add(opening->problems, -r, "/target/path", "BackingFileUnusable",
                "The rights of user %u cannot be taken: %s; check /etc/passwd and /etc/group, and that ublkd "
                "runs as root.",
                (unsigned)user, strerror(-r));
        return added < 0 ? added : r;
}

int loop_store_open(struct target_device *device, const struct loop_options *options, int *ret,
        struct stat *ret_stat, struct problem_list *problems)
{
        const struct store_opening opening = {.device = device, .options = options, .problems = problems};
        int fd;

        if (!options->path) { /* the supervisor chooses it before it stores the spec */
                fd = problem_add(problems, EINVAL, "/target/path", "MalformedSpec",
                        "The spec has a pool and no path; replace it (PUT /devices/NAME).");
                return fd < 0 ? fd : -EINVAL;
        }
        fd = device->store.user > 0 ? run_as_user(&opening, ret_stat) : open_store(&opening, ret_stat);
        if (fd < 0)
                return fd;
        *ret = fd;
        return 0;
}
