/* SPDX-License-Identifier: MIT */
/* The disks that processes have open or mapped.
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

#include "ublkd/base/file_io.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Return 1: a block node, with its device; 0: another file; -errno. */
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

/* Find the disk that a link of /proc leads to, if the caller asks about it. path: the text of the link. Its name
 * counts if the kernel does not list the device any more (a stopped disk), or does not say where the link leads.
 * Return 1: a file that is not a block node; 0; -errno. */
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

/* Add a process once, even if it has the disk open several times. A worker serves the disk of a device, and ublkd
 * keeps the store of a disk open: no administrator should end these processes, so a phrase names the device. */
static int add_process(const struct look *look, struct disk_users *disk, const struct process *process)
{
        const struct disk_users_roots *roots = look->roots;
        int pid = atoi(process->pid);
        char text[160];

        if (disk->last_pid == pid)
                return 0;
        disk->last_pid = pid;
        if (roots->describe && roots->describe(roots->describe_userdata, pid, text, sizeof(text))) {
                disk->kinds |= DISK_USER_DEVICE;
                return look_add_user(disk, "%s", text);
        }
        if (pid == roots->supervisor) {
                disk->by_ublkd = true;
                return 0;
        }
        disk->kinds |= DISK_USER_PROCESS;
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
                strcpy(path, "/"); /* recognise it by its device */
        else if (n < 0)
                return (int)n;
        if (path[0] != '/')
                return 0; /* "socket:[4711]" */
        r = find_disk_of_link(look, directory, descriptor, path, &disk);
        if (r < 0 || !disk || is_only_a_name(process->directory, descriptor))
                return r;
        return add_process(look, disk, process);
}

/* Stop at the first error, but ignore a descriptor that was closed meanwhile. */
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

/* Return 1; 0: no file is mapped; -EBADMSG. */
static int parse_mapping(char *line, struct mapping *ret)
{
        unsigned long long inode;
        unsigned device_major, device_minor;

        line[strcspn(line, "\n")] = '\0';
        ret->path = strchr(line, '/'); /* no other field contains one */
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
