/* SPDX-License-Identifier: MIT */
/* The mounts of every mount namespace that has a process.
 *
 * Each namespace is read once, from the first process that sees all of it. A process with another root sees a
 * part of it, which is read until a process is found that sees all. Not found: a namespace without processes
 * (kept by a bind mount), and a mount that was unmounted lazily. The checks in the kernel find these
 * (disk_stack.h, and an exclusive open). */
#include "ublkd/disk_users/disk_look.h"

#include "ublkd/base/clock.h"

#include "ublkd/disks/disk_name.h"

#include "ublkd/kernel/mount_line.h"
#include "ublkd/values/path_text.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

/* Find the disk of a device like "259:0"; the source of a mount is useless, as the mounting process may have
 * named a link. Return 0 with *ret, NULL: not a disk that the caller asks about; or -errno. */
static int find_disk_of_device(const struct look *look, const char *device, struct disk_users **ret)
{
        char path[PATH_MAX], target[PATH_MAX];
        const char *slash;
        int n = snprintf(path, sizeof(path), "%s/dev/block/%s", look->roots->sys, device);
        ssize_t r = n < 0 || (size_t)n >= sizeof(path)
                            ? -ENAMETOOLONG
                            : look_read_link(AT_FDCWD, path, target, sizeof(target));

        *ret = NULL;
        if (r < 0)
                return look_is_gone((int)r) ? 0 : (int)r;
        slash = strrchr(target, '/');
        *ret = slash ? look_find_disk(look, disk_name_number(slash + 1)) : NULL;
        return 0;
}

/* Return whether file systems of that type have a disk. The source of any other type is a word that the mounting
 * process chose, and in a user namespace every user can mount some of these types. */
static bool has_a_disk(const struct look *look, const char *type)
{
        _cleanup_fclose_ FILE *file = NULL;
        _cleanup_free_ char *line = NULL;
        char path[PATH_MAX];
        size_t size = 0, length = strcspn(type, "."); /* "fuse.sshfs" */

        snprintf(path, sizeof(path), "%s/filesystems", look->roots->proc);
        file = fopen(path, "re");
        while (file && getline(&line, &size, file) > 0) {
                const char *name = strchr(line, '\t'); /* "nodev\ttmpfs", "\text4" */

                if (name && strcspn(name + 1, "\n") == length && strncmp(name + 1, type, length) == 0)
                        return name == line;
        }
        return true;
}

static int add_mount(const struct look *look, const struct process *process, char *line)
{
        struct disk_users *disk;
        struct mount_line mount;
        int r = mount_line_parse(line, &mount);

        if (r >= 0)
                r = find_disk_of_device(look, mount.device, &disk);
        if (r < 0)
                return r;
        if (!disk) {
                disk = look_find_disk_of_path(look, mount.source);
                if (disk && !has_a_disk(look, mount.type))
                        disk = NULL;
        }
        if (!disk)
                return 0;
        disk->mounted = true;
        return disk_container_add_user(look, disk, process, "mounted at %s", mount.point);
}

enum {
        FIRST_COUNT = 1024, /* mounts of a namespace, for look_first_share() */
        CLOCK_EVERY = 256,
};

/* Opening mountinfo of an exiting process fails with EINVAL (mounts_open_common()). */
static int gone_of_mountinfo(int error)
{
        return error == EINVAL ? -ESRCH : -error;
}

/* Return -ETIME: there are more than `count_max`, or it is later than `until`. */
static int read_mounts(
        const struct look *look, const struct process *process, size_t count_max, uint64_t until)
{
        _cleanup_fclose_ FILE *file = look_open_file(process->directory, "mountinfo");
        _cleanup_free_ char *line = NULL;
        size_t size = 0;
        int r = 0;

        if (!file)
                return gone_of_mountinfo(errno);
        for (size_t count = 1; r >= 0 && getline(&line, &size, file) > 0; count++) {
                if (count > count_max || (count % CLOCK_EVERY == 0 && monotonic_now() >= until))
                        return -ETIME;
                line[strcspn(line, "\n")] = '\0';
                r = add_mount(look, process, line);
        }
        return r < 0 || feof(file) ? r : gone_of_mountinfo(errno);
}

/* Read the inode of the mount namespace, from "mnt:[4026531841]". Return 0 or -errno. */
static int read_namespace(const struct process *process, uint64_t *ret)
{
        unsigned long long inode;
        char name[32];
        ssize_t r = look_read_link(process->directory, "ns/mnt", name, sizeof(name));

        if (r < 0)
                return (int)r;
        if (sscanf(name, "mnt:[%llu]", &inode) != 1 || inode == 0)
                return -EBADMSG;
        *ret = inode;
        return 0;
}

/* Return 0: the thread sees the whole namespace; its tid: it sees a part; or -errno. */
static int read_view(const struct process *process)
{
        char root[2];
        ssize_t r = look_read_link(process->directory, "root", root, sizeof(root));

        if (r < 0 && r != -ENAMETOOLONG)
                return (int)r;
        return r == 1 && root[0] == '/' ? 0 : atoi(process->tid);
}

/* Read the mounts of a namespace, unless an earlier thread was read to the end, or has been put off. */
static int add_namespace(struct look *look, const struct process *process)
{
        struct seen_pair all = {}, view;
        int r = read_namespace(process, &all.first), root = r < 0 ? r : read_view(process);

        if (root < 0)
                return root;
        view = (struct seen_pair){.first = all.first, .second = (uint64_t)root};
        if (seen_set_has(&look->namespaces, all) || seen_set_has(&look->namespaces, view)
                || seen_set_has(&look->late_namespaces, view))
                return 0;
        r = read_mounts(look, process, look_first_share(look, FIRST_COUNT), UINT64_MAX);
        if (r == -ETIME) {
                r = seen_set_add(&look->late_namespaces, view);
                return r < 0 ? r : late_add(look, &look->late_mounts, process);
        }
        return r < 0 ? r : seen_set_add(&look->namespaces, view);
}

static int read_late(struct look *look, const struct process *process, uint64_t until)
{
        int r = read_mounts(look, process, SIZE_MAX, until);

        look->has_unread_mounts =
                look->has_unread_mounts || r < 0; /* also if it is gone: others may see the same */
        return r;
}

int disk_mounts_finish(struct look *look)
{
        int r = late_finish(look, &look->late_mounts, look->mounts_until, read_late, "mounts");

        look->has_unread_mounts = look->has_unread_mounts || r > 0;
        return r;
}

int disk_mounts_add(struct look *look, const struct process *process)
{
        int r = add_namespace(look, process);

        if (r == -ENOMEM)
                return r;
        if (r < 0)
                look_note_gap(look, process, "mounts", r);
        return 0;
}

int disk_swaps_add(struct look *look)
{
        _cleanup_fclose_ FILE *file = NULL;
        _cleanup_free_ char *line = NULL;
        char path[PATH_MAX];
        size_t size = 0;
        int r = 0;

        snprintf(path, sizeof(path), "%s/swaps", look->roots->proc);
        file = fopen(path, "re");
        if (!file)
                return errno == ENOENT ? 0 : -errno; /* a kernel without swap */
        while (r >= 0 && getline(&line, &size, file) > 0) {
                struct disk_users *disk;

                line[strcspn(line, " \t\n")] = '\0';
                path_unescape(line);
                disk = look_find_disk_of_path(look, line);
                if (disk)
                        r = look_add_user(disk, DISK_USER_UNKNOWN, "swap on %s", line);
        }
        return r < 0 || feof(file) ? r : -errno;
}
