/* SPDX-License-Identifier: MIT */
/* /run/ublkd: one lock, and for every device the socket of its worker and the region that its workers share.
 *
 * The address of a Unix socket has room for 107 bytes, a path may have 4095. So sockets are named through the
 * descriptor of their directory: /proc/self/fd/N/UID.sock. */
#include "ublkd/runtime/runtime_dir.h"

#include "ublkd/base/file_io.h"
#include "ublkd/runtime/runtime_names.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum {
        UID_LENGTH_MAX = 64,
        FILE_NAME_MAX = UID_LENGTH_MAX + 16, /* .UID.region.new; a socket's path has room for it */
        TEXT_SIZE_MAX = 128 * 1024,
};

static const char socket_suffix[] = ".sock", region_suffix[] = ".region", record_suffix[] = ".record";

static const char *const text_suffixes[] = {
        [RUNTIME_BACKING] = ".backing",
        [RUNTIME_CLAIM] = ".claim",
        [RUNTIME_PARAMS] = ".params",
        [RUNTIME_WORKER] = ".worker",
};
static_assert(ARRAY_SIZE(text_suffixes) == _RUNTIME_TEXT_MAX, "every text has a suffix");

struct runtime_dir {
        char *path;
        int fd;
        int lock_fd; /* PATH/lock: a file of its own, because other programs may lock the directory for their
                        own reasons */
        int workers_fd; /* PATH/workers */
};

DEFINE_CLEANUP(struct runtime_dir, runtime_dir_free);

/* Add a problem for an error of the directory itself. Return -error. */
static int explain(struct problem_list *problems, int error, const char *path)
{
        static const struct {
                int error;
                const char *reason, *advice;
        } causes[] = {
                {EACCES,  "RuntimeDirNotPermitted",  "start ublkd as root, or name another with --runtime-dir"},
                {EPERM,   "RuntimeDirNotPermitted",  "start ublkd as root, or name another with --runtime-dir"},
                {EROFS,   "RuntimeDirReadOnly",
                 "its file system is read-only; name another with --runtime-dir"                              },
                {ENOTDIR, "RuntimeDirNotADirectory",
                 "name another with --runtime-dir, or move away what is there"                                },
                {ENOENT,  "RuntimeDirMissing",       "make the directory above it first"                      },
        };
        const char *reason = "RuntimeDirUnusable", *advice = "name another with --runtime-dir";

        for (size_t i = 0; i < ARRAY_SIZE(causes); i++)
                if (causes[i].error == error) {
                        reason = causes[i].reason;
                        advice = causes[i].advice;
                }
        (void)problem_add(problems, error, "", reason, "The runtime directory %s cannot be used: %s; %s",
                path, strerror(error), advice);
        return -error;
}

/* Create the directory unless it exists. Return a descriptor of it, or -errno; -EPERM: it belongs to another
 * user. A symbolic link is followed only in the path that the administrator gave. */
static int open_dir_at(int parent_fd, const char *name, mode_t mode, bool force_mode)
{
        _cleanup_close_ int fd = -1;
        struct stat st;
        bool created = mkdirat(parent_fd, name, mode) == 0;

        if (!created && errno != EEXIST)
                return -errno;
        fd = openat(parent_fd, name,
                O_RDONLY | O_DIRECTORY | O_CLOEXEC | (parent_fd == AT_FDCWD ? 0 : O_NOFOLLOW));
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (st.st_uid != geteuid() && st.st_uid != 0)
                return -EPERM;
        /* Whatever the umask says. A chmod that changes nothing would wake programs that watch it. */
        if ((created || force_mode) && (st.st_mode & 07777) != mode && fchmod(fd, mode) < 0)
                return -errno;
        return TAKE_FD(fd);
}

/* Refuse a directory that other users can write to: they could replace a socket, a link or the lock. */
static int check_mode(int fd, const char *path, struct problem_list *problems)
{
        struct stat st;

        if (fstat(fd, &st) < 0)
                return explain(problems, errno, path);
        if ((st.st_mode & (S_IWGRP | S_IWOTH)) == 0)
                return 0;
        (void)problem_add(problems, EPERM, "", "RuntimeDirWritable",
                "The runtime directory %s cannot be used: others than its owner may write to it (mode %04o); "
                "take that permission away (chmod go-w), or name another with --runtime-dir",
                path, (unsigned)st.st_mode & 07777);
        return -EPERM;
}

static pid_t lock_holder(int lock_fd)
{
        char text[16] = "";

        return pread(lock_fd, text, sizeof(text) - 1, 0) > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

static int in_use(const char *path, pid_t holder, struct problem_list *problems)
{
        char who[32] = "";

        if (holder > 0)
                snprintf(who, sizeof(who), " (pid %d)", holder);
        (void)problem_add(problems, EBUSY, "", "RuntimeDirInUse",
                "The runtime directory %s is in use by another ublkd%s; stop that one, or name another with "
                "--runtime-dir",
                path, who);
        return -EBUSY;
}

/* The pid in the file is for people; only the lock counts. The lock belongs to the process: with flock(2), a
 * child that a killed ublkd leaves between fork and exec would hold it for a moment, and the next ublkd would
 * fail. */
static int lock(const char *path, int dir_fd, int *ret_fd, struct problem_list *problems)
{
        _cleanup_close_ int fd = openat(dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

        if (fd < 0)
                return explain(problems, errno, path);
        if (fcntl(fd, F_SETLK, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET}) < 0)
                return errno == EAGAIN || errno == EACCES ? in_use(path, lock_holder(fd), problems)
                                                          : explain(problems, errno, path);
        if (ftruncate(fd, 0) < 0 || dprintf(fd, "%d\n", getpid()) < 0)
                return explain(problems, errno, path);
        *ret_fd = TAKE_FD(fd);
        return 0;
}

int runtime_dir_open(const char *path, struct runtime_dir **ret, struct problem_list *problems)
{
        _cleanup_(runtime_dir_free_pointer) struct runtime_dir *dir = calloc(1, sizeof(*dir));
        int r;

        if (!dir)
                return -ENOMEM;
        dir->fd = dir->lock_fd = dir->workers_fd = -1;
        dir->path = strdup(path);
        if (!dir->path)
                return -ENOMEM;
        dir->fd = open_dir_at(AT_FDCWD, path, 0755, false);
        if (dir->fd < 0)
                return explain(problems, -dir->fd, path);
        r = check_mode(dir->fd, path, problems);
        if (r >= 0)
                r = lock(path, dir->fd, &dir->lock_fd, problems);
        if (r < 0)
                return r;
        dir->workers_fd = open_dir_at(dir->fd, RUNTIME_WORKERS_NAME, 0700, true);
        if (dir->workers_fd < 0)
                return explain(problems, -dir->workers_fd, path);
        *ret = TAKE_PTR(dir);
        return 0;
}

struct runtime_dir *runtime_dir_free(struct runtime_dir *dir)
{
        if (!dir)
                return NULL;
        close_fd(dir->workers_fd);
        close_fd(dir->lock_fd);
        close_fd(dir->fd);
        free(dir->path);
        free(dir);
        return NULL;
}

static bool is_at(int parent_fd, const char *name, int fd)
{
        struct stat there, open;

        return fstatat(parent_fd, name, &there, parent_fd == AT_FDCWD ? 0 : AT_SYMLINK_NOFOLLOW) == 0
               && fstat(fd, &open) == 0 && there.st_dev == open.st_dev && there.st_ino == open.st_ino;
}

int runtime_dir_check(const struct runtime_dir *dir)
{
        return is_at(AT_FDCWD, dir->path, dir->fd) && is_at(dir->fd, "lock", dir->lock_fd)
                               && is_at(dir->fd, RUNTIME_WORKERS_NAME, dir->workers_fd)
                       ? 0
                       : -ENOLINK;
}

static void replace_fd(int *fd, int fresh)
{
        close_fd(*fd);
        *fd = fresh;
}

/* A process loses its lock when it closes any descriptor of the file. So this opens the lock file only if it
 * does not have it yet: a lock that still exists is not touched. */
int runtime_dir_remake(struct runtime_dir *dir)
{
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_close_ int fd = open_dir_at(AT_FDCWD, dir->path, 0755, false), workers_fd = -1, lock_fd = -1;
        bool locked;
        int r = fd < 0 ? fd : check_mode(fd, dir->path, &problems);

        if (r < 0)
                return r;
        locked = is_at(fd, "lock", dir->lock_fd);
        if (!locked)
                r = lock(dir->path, fd, &lock_fd, &problems);
        if (r < 0)
                return r;
        workers_fd = open_dir_at(fd, RUNTIME_WORKERS_NAME, 0700, true);
        if (workers_fd < 0)
                return workers_fd;
        replace_fd(&dir->fd, TAKE_FD(fd));
        replace_fd(&dir->workers_fd, TAKE_FD(workers_fd));
        if (!locked)
                replace_fd(&dir->lock_fd, TAKE_FD(lock_fd));
        return 0;
}

const char *runtime_dir_path(const struct runtime_dir *dir)
{
        return dir->path;
}

int runtime_dir_open_disks(const struct runtime_dir *dir)
{
        return open_dir_at(dir->fd, "disks", 0755, true);
}

int runtime_dir_open_marks(const struct runtime_dir *dir, enum runtime_marks which)
{
        static const char *const names[_RUNTIME_MARKS_MAX] = {
                [RUNTIME_LIVE] = RUNTIME_LIVE_NAME,
                [RUNTIME_FAILED] = RUNTIME_FAILED_NAME,
        };

        return open_dir_at(dir->fd, names[which], 0700, true);
}

struct file_name {
        char name[FILE_NAME_MAX + 1];
};

/* Refuse a uid of the database that leads out of the directory. */
static int file_name(const char *uid, const char *suffix, struct file_name *ret)
{
        size_t length = strlen(uid);

        if (length == 0 || length > UID_LENGTH_MAX || strchr(uid, '/') || uid[0] == '.')
                return -EINVAL;
        snprintf(ret->name, sizeof(ret->name), "%s%s", uid, suffix);
        return 0;
}

static void socket_address(const struct runtime_dir *dir, const char *name, struct sockaddr_un *ret)
{
        *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
        snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%.*s", dir->workers_fd,
                FILE_NAME_MAX, name);
}

/* A file of a device that is being created, and a descriptor of it. */
struct making {
        const struct runtime_dir *dir;
        const struct device_region_key *key; /* of a region */
        const struct region_kept_wish *wish; /* likewise */
        int from;                            /* the region before it, or -1 */
        int fd;
};

/* Recreates UID`suffix` as a whole. Returns a descriptor or -errno. */
static int make_whole(const struct runtime_dir *dir, const char *uid, const char *suffix,
        int (*make)(int dir, const char *fresh, void *userdata), struct making *making)
{
        struct file_name name;
        int r = file_name(uid, suffix, &name);

        making->dir = dir;
        making->fd = -1;
        if (r >= 0)
                r = replace_at(dir->workers_fd, name.name, make, making);
        if (r >= 0)
                return making->fd;
        close_fd(making->fd);
        return r;
}

static int bind_socket(int dir _unused_, const char *fresh, void *userdata)
{
        struct making *making = userdata;
        struct sockaddr_un address;
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0)
                return -errno;
        socket_address(making->dir, fresh, &address);
        if (fchmod(fd, 0600) < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
                return -errno;
        making->fd = TAKE_FD(fd);
        return 0;
}

int runtime_dir_bind_worker(struct runtime_dir *dir, const char *uid)
{
        return make_whole(dir, uid, socket_suffix, bind_socket, &(struct making){});
}

int runtime_dir_connect_worker(struct runtime_dir *dir, const char *uid)
{
        struct file_name name;
        struct sockaddr_un address;
        _cleanup_close_ int fd = -1;
        int r = file_name(uid, socket_suffix, &name);

        if (r < 0)
                return r;
        fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        socket_address(dir, name.name, &address);
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
                return -errno;
        return TAKE_FD(fd);
}

int runtime_dir_open_region(struct runtime_dir *dir, const char *uid)
{
        struct file_name name;
        int r = file_name(uid, region_suffix, &name), fd;

        if (r < 0)
                return r;
        fd = openat(dir->workers_fd, name.name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        return fd < 0 ? -errno : fd;
}

/* Return a descriptor of a region that a new worker can use, or -errno if there is none. */
static int open_region_for(struct runtime_dir *dir, const char *uid, const struct device_region_key *key)
{
        _cleanup_close_ int fd = runtime_dir_open_region(dir, uid);
        struct device_region_header header;
        int r = fd < 0 ? fd : device_region_read_header(fd, &header);

        if (r < 0)
                return r;
        return header.queues == key->queues && header.epoch == key->epoch ? TAKE_FD(fd) : -ESTALE;
}

static int make_region(int dir, const char *fresh, void *userdata)
{
        struct making *making = userdata;
        _cleanup_close_ int fd = openat(dir, fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        int r = fd < 0 ? -errno : region_kept_format(fd, making->key, making->wish, making->from);

        if (r >= 0)
                making->fd = TAKE_FD(fd);
        return r;
}

int runtime_dir_ensure_region(struct runtime_dir *dir, const char *uid, const struct device_region_key *key)
{
        int fd = open_region_for(dir, uid, key);
        struct making making = {.key = key, .wish = &(struct region_kept_wish){}, .from = -1};

        return fd < 0 ? make_whole(dir, uid, region_suffix, make_region, &making) : fd;
}

int runtime_dir_ensure_kept(struct runtime_dir *dir, const char *uid, const struct device_region_key *key,
        const struct region_kept_wish *wish)
{
        _cleanup_close_ int fd = runtime_dir_open_region(dir, uid);
        struct making making = {.key = key, .wish = wish, .from = fd};

        if (fd >= 0 && region_kept_fits(fd, key, wish))
                return TAKE_FD(fd);
        return make_whole(dir, uid, region_suffix, make_region, &making);
}

static bool has_file(const struct runtime_dir *dir, const char *uid, const char *suffix)
{
        struct file_name name;

        return file_name(uid, suffix, &name) >= 0 && faccessat(dir->workers_fd, name.name, F_OK, 0) == 0;
}

bool runtime_dir_has_worker(const struct runtime_dir *dir, const char *uid)
{
        return has_file(dir, uid, socket_suffix) && has_file(dir, uid, region_suffix);
}

bool runtime_dir_has_record(const struct runtime_dir *dir, const char *uid)
{
        return has_file(dir, uid, record_suffix);
}

/* ---- texts ---- */

static int write_text(const struct runtime_dir *dir, const char *uid, const char *suffix, const char *text)
{
        struct file_name name;
        int r = file_name(uid, suffix, &name);

        return r < 0 ? r : replace_text_at(dir->workers_fd, name.name, 0600, text);
}

static int read_text(
        const struct runtime_dir *dir, const char *uid, const char *suffix, size_t size_max, char **ret)
{
        struct file_name name;
        int r = file_name(uid, suffix, &name);

        return r < 0 ? r : read_whole_at(dir->workers_fd, name.name, size_max, ret);
}

static int remove_file(const struct runtime_dir *dir, const char *uid, const char *suffix)
{
        struct file_name name;
        int r = file_name(uid, suffix, &name);

        if (r < 0)
                return r;
        return unlinkat(dir->workers_fd, name.name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int runtime_dir_write(struct runtime_dir *dir, const char *uid, enum runtime_text which, const char *text)
{
        return write_text(dir, uid, text_suffixes[which], text);
}

int runtime_dir_read(struct runtime_dir *dir, const char *uid, enum runtime_text which, char **ret)
{
        return read_text(dir, uid, text_suffixes[which], TEXT_SIZE_MAX, ret);
}

int runtime_dir_remove(struct runtime_dir *dir, const char *uid, enum runtime_text which)
{
        return remove_file(dir, uid, text_suffixes[which]);
}

int runtime_dir_write_record(struct runtime_dir *dir, const char *uid, const char *text)
{
        return write_text(dir, uid, record_suffix, text);
}

int runtime_dir_read_record(struct runtime_dir *dir, const char *uid, size_t size_max, char **ret)
{
        return read_text(dir, uid, record_suffix, size_max, ret);
}

int runtime_dir_remove_record(struct runtime_dir *dir, const char *uid)
{
        return remove_file(dir, uid, record_suffix);
}

int runtime_dir_remove_worker(struct runtime_dir *dir, const char *uid)
{
        int r = remove_file(dir, uid, socket_suffix),
            r2 = remove_file(dir, uid, text_suffixes[RUNTIME_WORKER]);

        return r < 0 ? r : r2;
}

int runtime_dir_remove_region(struct runtime_dir *dir, const char *uid)
{
        return remove_file(dir, uid, region_suffix);
}

/* ---- all records ---- */

/* Write the uid at the beginning of a record's file name. */
static bool uid_of_record(const char *name, char ret[static UID_LENGTH_MAX + 1])
{
        size_t length = strlen(name), suffix = strlen(record_suffix);

        if (length <= suffix || length - suffix > UID_LENGTH_MAX
                || strcmp(name + length - suffix, record_suffix) != 0)
                return false;
        memcpy(ret, name, length - suffix);
        ret[length - suffix] = '\0';
        return true;
}

int runtime_dir_each_record(
        struct runtime_dir *dir, int (*each)(void *userdata, const char *uid), void *userdata)
{
        int r = 0, fd = openat(dir->workers_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_closedir_ DIR *directory = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;
        char uid[UID_LENGTH_MAX + 1];

        if (!directory) {
                r = -errno;
                close_fd(fd);
                return r;
        }
        while (r >= 0 && (entry = readdir(directory)))
                if (uid_of_record(entry->d_name, uid))
                        r = each(userdata, uid);
        return r;
}

static int open_of_all(const struct runtime_dir *dir, const char *name)
{
        int fd = openat(dir->workers_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

        return fd < 0 ? -errno : fd;
}

int runtime_dir_open_database_mark(struct runtime_dir *dir)
{
        return open_of_all(dir, "database");
}

int runtime_dir_open_uids(struct runtime_dir *dir)
{
        return open_of_all(dir, "uids");
}
