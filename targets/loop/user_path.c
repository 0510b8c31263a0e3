/* SPDX-License-Identifier: MIT */
/* The path of a user's file. */
#include "targets/loop/user_path.h"

#include "targets/loop/mount_table.h"

#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

struct walk {
        const char *path;
        struct problem_list *problems;
        int at;         /* O_PATH, owned */
        uint64_t mount; /* that `at` is on; 0: not known yet */
};

static int refuse(const struct walk *walk, int error, const char *reason, const char *what)
{
        int r = problem_add(walk->problems, error, "/target/path", reason, "%s %s.", walk->path, what);

        return r < 0 ? r : -error;
}

/* ---- mounts ---- */

/* The mask is empty and the answer need not be of now, so that no file system is asked. */
static int read_mount(int fd, uint64_t *ret)
{
        struct statx info;

        if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, 0, &info) < 0)
                return -errno;
        if (!(info.stx_mask & STATX_MNT_ID))
                return -EOPNOTSUPP;
        *ret = info.stx_mnt_id;
        return 0;
}

static bool is_fuse(const char *type)
{
        static const char *const kinds[] = {"fuse", "fuseblk"}; /* also "KIND.SUBTYPE" */

        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                size_t length = strlen(kinds[i]);

                if (strncmp(type, kinds[i], length) == 0 && (type[length] == '\0' || type[length] == '.'))
                        return true;
        }
        return false;
}

/* Return 1 if the mount is of FUSE, 0 if not; -ENOENT: it is not mounted any more; other -errno. */
static int is_mount_of_fuse(uint64_t mount)
{
        _cleanup_mount_row_ struct mount_row row = {};
        int r = mount_table_find_id(mount, &row);

        return r < 0 ? r : is_fuse(row.type);
}

static int check_mount(struct walk *walk)
{
        uint64_t mount = 0;
        int r = read_mount(walk->at, &mount);

        if (r < 0 || mount == walk->mount)
                return r;
        r = is_mount_of_fuse(mount);
        if (r > 0)
                return refuse(walk, EINVAL, "BackingFileUnsuitable",
                        "is on a FUSE file system, whose server a user may be; use a file of another file "
                        "system");
        walk->mount = mount;
        return r;
}

/* ---- steps ---- */

static int step(struct walk *walk, const char *name, bool last)
{
        const struct open_how how = {
                .flags = O_PATH | O_CLOEXEC | (last ? 0 : O_DIRECTORY),
                .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
        };
        int fd = (int)syscall(SYS_openat2, walk->at, name, &how, sizeof(how));

        if (fd < 0 && errno == ELOOP)
                return refuse(walk, ELOOP, "BackingFileUnsuitable",
                        "leads through a symbolic link, which is not followed for a user; give the path "
                        "without links");
        if (fd < 0)
                return -errno;
        close_fd(walk->at);
        walk->at = fd;
        return check_mount(walk);
}

static int go(struct walk *walk)
{
        char text[PATH_MAX], *rest = text + 1, *name;
        int r = 0;

        if (*walk->path != '/' || strlen(walk->path) >= sizeof(text))
                return -ENAMETOOLONG;
        strcpy(text, walk->path);
        walk->at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (walk->at < 0)
                return -errno;
        while (r >= 0 && (name = strsep(&rest, "/"))) {
                if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
                        return refuse(walk, EINVAL, "BackingFileUnsuitable",
                                "has \".\", \"..\" or \"//\"; give the path without them");
                r = step(walk, name, !rest);
        }
        return r;
}

int user_path_open(const char *path, struct problem_list *problems)
{
        struct walk walk = {.path = path, .problems = problems, .at = -1};
        int r = go(&walk);

        if (r >= 0)
                return walk.at;
        close_fd(walk.at);
        return r;
}

int user_path_check_file(const struct stat *stat, uid_t user, const char *path, struct problem_list *problems)
{
        int r;

        if (!S_ISREG(stat->st_mode))
                r = problem_add(problems, EINVAL, "/target/path", "BackingFileUnsuitable",
                        "%s is not a regular file; the disk of a user needs one.", path);
        else if (stat->st_uid != user)
                r = problem_add(problems, EACCES, "/target/path", "BackingFileNotPermitted",
                        "%s does not belong to user %u, the owner of the device; use a file of this user, or "
                        "give it back (chown).",
                        path, (unsigned)user);
        else
                return 0;
        return r < 0 ? r : S_ISREG(stat->st_mode) ? -EACCES : -EINVAL;
}
