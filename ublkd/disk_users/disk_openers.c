/* SPDX-License-Identifier: MIT */
/* The disks that processes have open.
 *
 * A disk is recognised by the number of the device, not by the name of its node: every user can call a file
 * ublkb0, and a container may have the disk as /dev/xvda. The process asks the kernel with AT_STATX_DONT_SYNC,
 * so that it waits for no server and no FUSE daemon, and only about descriptors with a path.
 *
 * Not found: a descriptor in flight through a socket, a descriptor that only a ring holds (a fixed file of
 * io_uring), and a descriptor that one process passes to another during the search. TRY_STOP_DEV finds all of
 * them; on an older kernel only an exclusive opener is found. */
#include "ublkd/disk_users/disk_look.h"

#include "ublkd/disks/disk_name.h"

#include "ublkd/base/clock.h"
#include "ublkd/base/file_io.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum {
        FIRST_COUNT = 4096, /* descriptors of a process, for look_first_share() */
        CLOCK_EVERY = 256,
};

int disk_node_ask(int directory, const char *name, dev_t *ret)
{
        struct statx info;

        if (statx(directory, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &info) < 0)
                return -errno;
        *ret = makedev(info.stx_rdev_major, info.stx_rdev_minor);
        return S_ISBLK(info.stx_mode);
}

static struct disk_users *find_disk_of_device(const struct look *look, dev_t device)
{
        for (size_t i = 0; i < look->device_count; i++)
                if (look->devices[i].device == device)
                        return look_find_disk(look, look->devices[i].number);
        return NULL;
}

/* The name of a link counts if the kernel does not list the device any more (a stopped disk), or does not say where the
 * link leads. */
int disk_of_node(const struct look *look, int asked, dev_t device, const char *path, struct disk_users **ret)
{
        *ret = NULL;
        if (asked == 0)
                return 1;
        if (asked == -ENOMEM || look_is_gone(asked))
                return asked;
        if (asked > 0)
                *ret = find_disk_of_device(look, device);
        if (!*ret)
                *ret = look_find_disk_of_path(look, path);
        return 0;
}

/* A descriptor that only names its file (O_PATH) does not use it, and every user can open one. */
static bool is_only_a_name(int process, const char *descriptor)
{
        char name[NAME_MAX + 16], text[256];
        unsigned flags;
        const char *line;

        snprintf(name, sizeof(name), "fdinfo/%s", descriptor);
        if (read_text_at(process, name, text, sizeof(text)) < 0)
                return false;
        line = strstr(text, "flags:");
        return line && sscanf(line, "flags: %o", &flags) == 1 && (flags & O_PATH);
}

/* Add a process once, even if it has the disk open several times. A worker serves the disk of a device, ublkd keeps
 * the store of a disk open, and the service manager keeps that descriptor for the next ublkd: no administrator should
 * end these processes, so a phrase names the device. */
int disk_process_add(const struct look *look, struct disk_users *disk, const struct process *process)
{
        const struct disk_users_roots *roots = look->roots;
        int pid = atoi(process->pid);
        char text[160];

        if (disk->last_pid == pid)
                return 0;
        disk->last_pid = pid;
        if (roots->describe && roots->describe(roots->describe_userdata, pid, text, sizeof(text))) {
                disk->kinds |= DISK_USER_DEVICE;
                return look_add_user(disk, DISK_USER_UNKNOWN, "%s", text);
        }
        if (pid == roots->supervisor) {
                disk->by_ublkd = true;
                return 0;
        }
        if (pid == roots->keeper) {
                disk->by_keeper = true;
                snprintf(disk->keeper_comm, sizeof(disk->keeper_comm), "%s", process->comm);
                return 0;
        }
        disk->kinds |= DISK_USER_PROCESS;
        return disk_container_add_user(look, disk, process, "process %s (%s)", process->pid, process->comm);
}

static int add_opener(
        const struct look *look, const struct process *process, int directory, const char *descriptor)
{
        char path[PATH_MAX];
        ssize_t n = look_read_link(directory, descriptor, path, sizeof(path));
        struct disk_users *disk;
        dev_t device = 0;
        int r;

        if (n == -ENAMETOOLONG)
                strcpy(path, "/"); /* recognise it by its device */
        else if (n < 0)
                return (int)n;
        if (path[0] != '/')
                return 0; /* "socket:[4711]" */
        r = look->roots->node ? look->roots->node(directory, descriptor, &device)
                              : disk_node_ask(directory, descriptor, &device);
        r = disk_of_node(look, r, device, path, &disk);
        if (r < 0 || !disk || is_only_a_name(process->directory, descriptor))
                return r;
        return disk_process_add(look, disk, process);
}

/* Stop at the first error, but ignore a descriptor that was closed meanwhile. Return -ETIME: there are more than
 * `count_max`, or it is later than `until`. */
static int add_openers(
        const struct look *look, const struct process *process, size_t count_max, uint64_t until)
{
        _cleanup_closedir_ DIR *dir = look_open_directory(process->directory, "fd");

        if (!dir)
                return -errno;
        for (size_t count = 0;; count++) {
                const struct dirent *entry;
                int r;

                if (count > count_max || (count % CLOCK_EVERY == CLOCK_EVERY - 1 && monotonic_now() >= until))
                        return -ETIME;
                errno = 0;
                entry = readdir(dir);
                if (!entry)
                        return -errno;
                r = entry->d_name[0] == '.' ? 0 : add_opener(look, process, dirfd(dir), entry->d_name);
                if (r < 0 && !look_is_gone(r))
                        return r;
        }
}

int disk_openers_add(struct look *look, const struct process *process)
{
        int r = add_openers(look, process, look_first_share(look, FIRST_COUNT), UINT64_MAX);

        if (r == -ETIME)
                return late_add(look, &look->late_openers, process);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                look_note_gap(look, process, "descriptors", r);
        return 0;
}

static int read_late(struct look *look, const struct process *process, uint64_t until)
{
        return add_openers(look, process, SIZE_MAX, until);
}

int disk_openers_finish(struct look *look)
{
        return late_finish(look, &look->late_openers, look->openers_until, read_late, "descriptors");
}
