/* SPDX-License-Identifier: MIT */
/* The disks that processes have open or mapped.
 *
 * What a descriptor leads to is known by the number of the device, whatever its node is called: anybody can
 * call a file ublkb0, and a container may have the disk as /dev/xvda. The kernel is asked with
 * AT_STATX_DONT_SYNC, so that no server and no FUSE daemon is waited for, and only about what has a path.
 *
 * Not seen: a descriptor that is on its way through a socket, or that a ring alone holds (a fixed file of
 * io_uring whose descriptor was closed). Nor can a look at process after process see a descriptor that is
 * passed on behind it. TRY_STOP_DEV sees all of them; older kernels see them where the disk was opened
 * exclusively. */
#include "ublkd/disk_users/disk_look.h"

#include "ublkd/disks/disk_name.h"

#include "ublkd/base/file_io.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* 1: a block node, with its device; 0: something else; -errno. */
static int ask_node(int directory, const char *name, dev_t *ret)
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

/* The disk that a link of /proc leads to, if it is one that is asked about. `path` is what the link says. The
 * name counts where the kernel does not show the device any more (a disk that was stopped), and where it does
 * not say what the link leads to. 1: a file that is no block node; 0; -errno. */
static int find_disk_of_link(
        const struct look *look, int directory, const char *name, const char *path, struct disk_users **ret)
{
        dev_t device = 0;
        int r = look->roots->node ? look->roots->node(directory, name, &device)
                                  : ask_node(directory, name, &device);

        *ret = NULL;
        if (r == 0)
                return 1;
        if (r == -ENOMEM || look_is_gone(r))
                return r;
        if (r > 0)
                *ret = find_disk_of_device(look, device);
        if (!*ret)
                *ret = look_find_disk_of_path(look, path);
        return 0;
}

/* A descriptor that only names its file (O_PATH) uses nothing, and everybody can have one. */
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

/* Once, however often it has the disk open. The disk of a device is served by its worker, and ublkd keeps what it lies
 * on open: neither is a process that anybody should end. */
static int add_process(const struct look *look, struct disk_users *disk, const struct process *process)
{
        const struct disk_users_roots *roots = look->roots;
        int pid = atoi(process->pid);
        char text[160];

        if (disk->last_pid == pid)
                return 0;
        disk->last_pid = pid;
        if (roots->describe && roots->describe(roots->describe_userdata, pid, text, sizeof(text)))
                return look_add_user(disk, "%s", text);
        if (pid == roots->supervisor)
                return look_add_user(disk, "ublkd itself (process %d), for a device that lies on it", pid);
        return look_add_user(disk, "process %s (%s)", process->pid, process->comm);
}

static int add_opener(
        const struct look *look, const struct process *process, int directory, const char *descriptor)
{
        char path[PATH_MAX];
        ssize_t n = look_read_link(directory, descriptor, path, sizeof(path));
        struct disk_users *disk;
        int r;

        if (n == -ENAMETOOLONG)
                strcpy(path, "/"); /* its device tells */
        else if (n < 0)
                return (int)n;
        if (path[0] != '/')
                return 0; /* "socket:[4711]" */
        r = find_disk_of_link(look, directory, descriptor, path, &disk);
        if (r < 0 || !disk || is_only_a_name(process->directory, descriptor))
                return r;
        return add_process(look, disk, process);
}

/* Stops at the first error but one: a descriptor that was closed meanwhile is none. */
static int add_openers(const struct look *look, const struct process *process)
{
        _cleanup_closedir_ DIR *dir = look_open_directory(process->directory, "fd");

        if (!dir)
                return -errno;
        for (;;) {
                const struct dirent *entry;
                int r;

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
        int r = add_openers(look, process);

        if (r == -ENOMEM)
                return r;
        if (r < 0)
                look_note_gap(look, process, "descriptors", r);
        return 0;
}

/* A line of maps: "00400000-00401000 rw-s 00000000 08:01 99    /srv/file". */
struct mapping {
        unsigned long from, to;
        struct seen_pair file; /* the device of its file system, and its inode */
        const char *path;
};

/* 1; 0: no file is mapped; -EBADMSG. */
static int parse_mapping(char *line, struct mapping *ret)
{
        unsigned long long inode;
        unsigned device_major, device_minor;

        line[strcspn(line, "\n")] = '\0';
        ret->path = strchr(line, '/'); /* the only field that has one */
        if (!ret->path)
                return 0;
        if (sscanf(line, "%lx-%lx %*s %*s %x:%x %llu", &ret->from, &ret->to, &device_major, &device_minor,
                    &inode)
                != 5)
                return -EBADMSG;
        if (inode == 0)
                return 0; /* "[anon:a/b]" */
        ret->file = (struct seen_pair){
                .first = makedev(device_major, device_minor) + UINT64_C(1), .second = inode};
        return 1;
}

static int add_mapping(struct look *look, const struct process *process, char *line)
{
        struct disk_users *disk;
        struct mapping mapping;
        char name[64];
        int r = parse_mapping(line, &mapping);

        if (r <= 0 || seen_set_has(&look->files, mapping.file))
                return r;
        /* the link has no leading zeros */
        snprintf(name, sizeof(name), "map_files/%lx-%lx", mapping.from, mapping.to);
        r = find_disk_of_link(look, process->directory, name, mapping.path, &disk);
        if (r > 0)
                return seen_set_add(&look->files, mapping.file);
        if (r == -ENOMEM || !disk)
                return r == -ENOMEM ? r : 0;
        return add_process(look, disk, process);
}

static int add_mappers(struct look *look, const struct process *process)
{
        _cleanup_fclose_ FILE *file = look_open_file(process->directory, "maps");
        _cleanup_free_ char *line = NULL;
        size_t size = 0;
        int r = 0;

        if (!file)
                return -errno;
        while (r >= 0 && getline(&line, &size, file) > 0)
                r = add_mapping(look, process, line);
        return r < 0 || feof(file) ? r : -errno;
}

int disk_mappers_add(struct look *look, const struct process *process)
{
        int r = add_mappers(look, process);

        if (r == -ENOMEM)
                return r;
        if (r < 0)
                look_note_gap(look, process, "mappings", r);
        return 0;
}
