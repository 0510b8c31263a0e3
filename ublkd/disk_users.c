/* Who uses disks: what /proc and /sys tell, in one pass for all that are asked about.
 *
 * Of what processes have open, the path is looked at first: a stat() of other people's files could hang on a
 * dead network or FUSE mount, while the kernel prints a path without asking anybody. But anybody can call a
 * file ublkb0, so what has the right name must be a block node as well; no ordinary user can make one. */
#include "ublkd/disk_users.h"

#include "ublkd/disk_name.h"
#include "ublkd/disk_stack.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { NAMESPACES_MAX = 256 }; /* mount tables that are looked at */

struct search {
        const struct disk_users_roots *roots;
        struct disk_users *disks; /* by number */
        size_t disk_count;
        char namespaces[NAMESPACES_MAX][32]; /* "mnt:[4026531841]" */
        size_t namespace_count;
};

static void closedir_pointer(DIR **dir)
{
        if (*dir)
                (void)closedir(*dir);
}

static void fclose_pointer(FILE **file)
{
        if (*file)
                (void)fclose(*file);
}

#define _cleanup_closedir_ _cleanup_(closedir_pointer)
#define _cleanup_fclose_ _cleanup_(fclose_pointer)

static bool is_number(const char *text)
{
        return *text && strspn(text, "0123456789") == strlen(text);
}

static bool ask_is_block(int directory, const char *name)
{
        struct statx info;

        /* DONT_SYNC: what the kernel knows by itself, no question to a server or a FUSE daemon. */
        if (statx(directory, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &info) < 0)
                return errno == EPERM; /* map_files without CAP_SYS_ADMIN: nobody can tell */
        return S_ISBLK(info.stx_mode);
}

static bool is_block(const struct search *search, int directory, const char *name)
{
        return search->roots->is_block ? search->roots->is_block(directory, name)
                                       : ask_is_block(directory, name);
}

static int compare_numbers(const void *one, const void *other)
{
        const struct disk_users *left = one, *right = other;

        return (left->number > right->number) - (left->number < right->number);
}

/* NULL: nobody asks about it, or it is no disk (-1). */
static struct disk_users *find_disk(const struct search *search, int number)
{
        const struct disk_users key = {.number = number};

        return bsearch(&key, search->disks, search->disk_count, sizeof(key), compare_numbers);
}

static struct disk_users *find_disk_of_path(const struct search *search, const char *path)
{
        return find_disk(search, disk_name_number_in_path(path));
}

static int add_user(struct disk_users *disk, const char *format, ...) _printf_(2, 3);

/* Once for each phrase. */
static int add_user(struct disk_users *disk, const char *format, ...)
{
        va_list arguments;
        char *item;
        int n;

        va_start(arguments, format);
        n = vasprintf(&item, format, arguments);
        va_end(arguments);
        if (n < 0)
                return -ENOMEM;
        for (size_t i = 0; i < disk->count; i++)
                if (strcmp(disk->items[i], item) == 0) {
                        free(item);
                        return 0;
                }
        if (disk->count == DISK_USERS_MAX) {
                disk->dropped++;
                free(item);
                return 0;
        }
        disk->items[disk->count++] = item;
        return 0;
}

static ssize_t read_link(int directory, const char *name, char *text, size_t size)
{
        ssize_t n = readlinkat(directory, name, text, size - 1);

        if (n >= 0)
                text[n] = '\0';
        return n;
}

static void read_comm(int process, char text[static 32])
{
        _cleanup_close_ int fd = openat(process, "comm", O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, 31);

        text[n > 0 ? n : 0] = '\0';
        text[strcspn(text, "\n")] = '\0';
}

/* udev opens every new disk for a moment to see what is on it. */
static bool is_prober(const char *comm)
{
        static const char *const probers[] = {
                "systemd-udevd", "(udev-worker)", "udevd", "udev-worker", "(udevadm)"};

        for (size_t i = 0; i < ARRAY_SIZE(probers); i++)
                if (strcmp(comm, probers[i]) == 0)
                        return true;
        return false;
}

/* With hundreds of disks most processes are workers. What one has open is looked at: a disk may be the
 * backing store of another. It maps none; and its mount namespace is its own (targets/worker/sandbox.c) and
 * keeps no mount alive, so that neither is to be read, and those of others are not crowded out. */
static bool is_worker(const char *comm)
{
        return strcmp(comm, "ublkd-worker") == 0;
}

/* A descriptor that only names its file (O_PATH) uses nothing, and everybody can have one. */
static bool is_only_a_name(int process, const char *descriptor)
{
        char name[NAME_MAX + 16], text[256];
        _cleanup_close_ int fd = -1;
        unsigned flags;
        const char *line;
        ssize_t n;

        snprintf(name, sizeof(name), "fdinfo/%s", descriptor);
        fd = openat(process, name, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (n < 0)
                return false;
        text[n] = '\0';
        line = strstr(text, "flags:");
        return line && sscanf(line, "flags: %o", &flags) == 1 && (flags & O_PATH);
}

/* A process of /proc. */
struct process {
        const char *pid;
        char comm[32];
        int directory;
};

/* Once, however often it has the disk open. */
static int add_process(struct disk_users *disk, const struct process *process)
{
        int pid = atoi(process->pid);

        if (disk->last_pid == pid)
                return 0;
        disk->last_pid = pid;
        return add_user(disk, "process %s (%s)", process->pid, process->comm);
}

static int add_openers(const struct search *search, const struct process *process)
{
        int fd = openat(process->directory, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
        _cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        char target[PATH_MAX];

        if (!dir) {
                close_fd(fd);
                return 0;
        }
        for (struct dirent *entry = readdir(dir); r >= 0 && entry; entry = readdir(dir)) {
                struct disk_users *disk;

                if (entry->d_name[0] == '.'
                        || read_link(dirfd(dir), entry->d_name, target, sizeof(target)) <= 0)
                        continue;
                disk = find_disk_of_path(search, target);
                if (disk && is_block(search, dirfd(dir), entry->d_name)
                        && !is_only_a_name(process->directory, entry->d_name))
                        r = add_process(disk, process);
        }
        return r;
}

/* `line` begins with the addresses, "00400000-00401000"; the link below map_files has no leading zeros. */
static bool is_block_mapping(const struct search *search, int process, const char *line)
{
        unsigned long from, to;
        char name[64];

        if (sscanf(line, "%lx-%lx", &from, &to) != 2)
                return true;
        snprintf(name, sizeof(name), "map_files/%lx-%lx", from, to);
        return is_block(search, process, name);
}

static int add_mappers(const struct search *search, const struct process *process)
{
        int fd = openat(process->directory, "maps", O_RDONLY | O_CLOEXEC), r = 0;
        _cleanup_fclose_ FILE *file = fd < 0 ? NULL : fdopen(fd, "re");
        _cleanup_free_ char *line = NULL;
        size_t size = 0;

        if (!file) {
                close_fd(fd);
                return 0;
        }
        while (r >= 0 && getline(&line, &size, file) > 0) {
                const char *path = strchr(line, '/'); /* the only field that has one */
                struct disk_users *disk;

                line[strcspn(line, "\n")] = '\0';
                disk = path ? find_disk_of_path(search, path) : NULL;
                if (disk && is_block_mapping(search, process->directory, line))
                        r = add_process(disk, process);
        }
        return r;
}

/* "\040" → ' ', in place. */
static void decode_octal(char *text)
{
        char *to = text;

        for (const char *from = text; *from; to++) {
                if (from[0] == '\\' && strspn(from + 1, "01234567") >= 3) {
                        *to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
                        from += 4;
                } else {
                        *to = *from++;
                }
        }
        *to = '\0';
}

/* Of "259:0": a mount keeps the words of whoever made it, and those may be a link's. */
static struct disk_users *find_disk_of_device(const struct search *search, const char *device)
{
        char path[PATH_MAX], target[PATH_MAX];
        const char *slash;
        int n = snprintf(path, sizeof(path), "%s/dev/block/%s", search->roots->sys, device);

        if (n < 0 || (size_t)n >= sizeof(path) || read_link(AT_FDCWD, path, target, sizeof(target)) <= 0)
                return NULL;
        slash = strrchr(target, '/');
        return slash ? find_disk(search, disk_name_number(slash + 1)) : NULL;
}

/* Whether file systems of that type have a disk. Of others the source is any word that whoever mounted it
 * chose, and in a user namespace anybody can mount some of them. */
static bool has_a_disk(const struct search *search, const char *type)
{
        _cleanup_fclose_ FILE *file = NULL;
        _cleanup_free_ char *line = NULL;
        char path[PATH_MAX];
        size_t size = 0, length = strcspn(type, "."); /* "fuse.sshfs" */

        snprintf(path, sizeof(path), "%s/filesystems", search->roots->proc);
        file = fopen(path, "re");
        while (file && getline(&line, &size, file) > 0) {
                const char *name = strchr(line, '\t'); /* "nodev\ttmpfs", "\text4" */

                if (name && strcspn(name + 1, "\n") == length && strncmp(name + 1, type, length) == 0)
                        return name == line;
        }
        return true;
}

/* One line of mountinfo: "36 35 98:0 /root /mount/point options - type source super-options". */
static int add_mount(const struct search *search, char *line)
{
        char *fields[5], *rest = line, *separator = strstr(line, " - "), *source, *type;
        struct disk_users *disk;

        if (!separator)
                return 0;
        *separator = '\0';
        source = separator + strlen(" - ");
        type = strsep(&source, " ");
        source = strsep(&source, " ");
        if (!source)
                return 0;
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
                fields[i] = strsep(&rest, " ");
                if (!fields[i])
                        return 0;
        }
        decode_octal(source);
        disk = find_disk_of_device(search, fields[2]);
        if (!disk) {
                disk = find_disk_of_path(search, source);
                if (disk && !has_a_disk(search, type))
                        disk = NULL;
        }
        decode_octal(fields[4]);
        return disk ? add_user(disk, "mounted at %s", fields[4]) : 0;
}

static int add_mounts(const struct search *search, int process)
{
        int fd = openat(process, "mountinfo", O_RDONLY | O_CLOEXEC), r = 0;
        _cleanup_fclose_ FILE *file = fd < 0 ? NULL : fdopen(fd, "re");
        _cleanup_free_ char *line = NULL;
        size_t size = 0;

        if (!file) {
                close_fd(fd);
                return 0;
        }
        while (r >= 0 && getline(&line, &size, file) > 0) {
                line[strcspn(line, "\n")] = '\0';
                r = add_mount(search, line);
        }
        return r;
}

/* Threads of the kernel, often half of what is in /proc, run no program and have nothing open. */
static bool runs_program(int process)
{
        char byte;

        return readlinkat(process, "exe", &byte, 1) >= 0 || errno != ENOENT;
}

/* True once for every mount namespace. */
static bool is_new_namespace(struct search *search, int process)
{
        char name[32];

        if (search->namespace_count == NAMESPACES_MAX
                || read_link(process, "ns/mnt", name, sizeof(name)) <= 0)
                return false;
        for (size_t i = 0; i < search->namespace_count; i++)
                if (strcmp(search->namespaces[i], name) == 0)
                        return false;
        strcpy(search->namespaces[search->namespace_count++], name);
        return true;
}

static void note_place(const struct search *search, const struct process *process)
{
        struct disk_users_place *place = search->roots->place;

        if (!place)
                return;
        snprintf(place->comm, sizeof(place->comm), "%s", process->comm);
        place->pid = atoi(process->pid);
}

static int search_process(struct search *search, int proc, const char *pid)
{
        _cleanup_close_ int directory = openat(proc, pid, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct process process = {.pid = pid, .directory = directory};
        bool worker;
        int r = 0;

        if (directory < 0 || !runs_program(directory))
                return 0; /* or gone meanwhile */
        read_comm(directory, process.comm);
        note_place(search, &process);
        worker = is_worker(process.comm);
        if (!worker && is_new_namespace(search, directory))
                r = add_mounts(search, directory);
        if (r < 0 || is_prober(process.comm))
                return r;
        r = add_openers(search, &process);
        return r < 0 || worker ? r : add_mappers(search, &process);
}

static int search_processes(struct search *search)
{
        _cleanup_closedir_ DIR *dir = opendir(search->roots->proc);
        int r = 0;

        if (!dir)
                return -errno;
        for (struct dirent *entry = readdir(dir); r >= 0 && entry; entry = readdir(dir))
                if (is_number(entry->d_name))
                        r = search_process(search, dirfd(dir), entry->d_name);
        return r;
}

static int search_swaps(const struct search *search)
{
        _cleanup_fclose_ FILE *file = NULL;
        _cleanup_free_ char *line = NULL;
        char path[PATH_MAX];
        size_t size = 0;
        int r = 0;

        snprintf(path, sizeof(path), "%s/swaps", search->roots->proc);
        file = fopen(path, "re");
        if (!file)
                return 0; /* a kernel without swap */
        while (r >= 0 && getline(&line, &size, file) > 0) {
                struct disk_users *disk;

                line[strcspn(line, " \t\n")] = '\0';
                decode_octal(line);
                disk = find_disk_of_path(search, line);
                if (disk)
                        r = add_user(disk, "swap on %s", line);
        }
        return r;
}

static int add_stacked(void *userdata, int number, const char *phrase)
{
        struct disk_users *disk = find_disk(userdata, number);

        return disk ? add_user(disk, "%s", phrase) : 0;
}

int disk_users_find(const struct disk_users_roots *roots, struct disk_users *disks, size_t count)
{
        _cleanup_free_ struct search *search = calloc(1, sizeof(*search));
        int r;

        if (!search)
                return -ENOMEM;
        search->roots = roots;
        search->disks = disks;
        search->disk_count = count;
        qsort(disks, count, sizeof(*disks), compare_numbers);
        r = disk_stack_find(roots->sys, add_stacked, search);
        if (r >= 0)
                r = search_swaps(search);
        return r < 0 ? r : search_processes(search);
}

void disk_users_clear(struct disk_users *users)
{
        for (size_t i = 0; i < users->count; i++)
                free(users->items[i]);
        *users = (struct disk_users){.number = users->number};
}
