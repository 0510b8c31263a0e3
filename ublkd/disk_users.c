/* Who uses /dev/ublkbN: what /proc and /sys tell.
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
        char disk[32]; /* "ublkb0" */
        struct disk_users *found;
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

static int add_user(struct search *search, const char *format, ...) _printf_(2, 3);

/* Once for each phrase. */
static int add_user(struct search *search, const char *format, ...)
{
        struct disk_users *found = search->found;
        va_list arguments;
        char *item;
        int n;

        va_start(arguments, format);
        n = vasprintf(&item, format, arguments);
        va_end(arguments);
        if (n < 0)
                return -ENOMEM;
        for (size_t i = 0; i < found->count; i++)
                if (strcmp(found->items[i], item) == 0) {
                        free(item);
                        return 0;
                }
        if (found->count == DISK_USERS_MAX) {
                found->dropped++;
                free(item);
                return 0;
        }
        found->items[found->count++] = item;
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

static bool has_open(const struct search *search, int process)
{
        int fd = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        char target[PATH_MAX];

        if (!dir) {
                close_fd(fd);
                return false;
        }
        for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
                if (entry->d_name[0] != '.'
                        && read_link(dirfd(dir), entry->d_name, target, sizeof(target)) > 0
                        && disk_name_in_path(search->disk, target)
                        && is_block(search, dirfd(dir), entry->d_name)
                        && !is_only_a_name(process, entry->d_name))
                        return true;
        return false;
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

static bool has_mapped(const struct search *search, int process)
{
        int fd = openat(process, "maps", O_RDONLY | O_CLOEXEC);
        _cleanup_fclose_ FILE *file = fd < 0 ? NULL : fdopen(fd, "re");
        _cleanup_free_ char *line = NULL;
        size_t size = 0;
        bool found = false;

        if (!file) {
                close_fd(fd);
                return false;
        }
        while (!found && getline(&line, &size, file) > 0) {
                const char *path = strchr(line, '/'); /* the only field that has one */

                line[strcspn(line, "\n")] = '\0';
                found = path && disk_name_in_path(search->disk, path)
                        && is_block_mapping(search, process, line);
        }
        return found;
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

/* Whether "259:0" is the disk: a mount keeps the words of whoever made it, and those may be a link's. */
static bool is_disk_number(const struct search *search, const char *number)
{
        char path[PATH_MAX], target[PATH_MAX];
        const char *slash;
        int n = snprintf(path, sizeof(path), "%s/dev/block/%s", search->roots->sys, number);

        if (n < 0 || (size_t)n >= sizeof(path) || read_link(AT_FDCWD, path, target, sizeof(target)) <= 0)
                return false;
        slash = strrchr(target, '/');
        return slash && disk_name_matches(search->disk, slash + 1);
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
static int add_mount(struct search *search, char *line)
{
        char *fields[5], *rest = line, *separator = strstr(line, " - "), *source, *type;

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
        if (!(disk_name_in_path(search->disk, source) && has_a_disk(search, type))
                && !is_disk_number(search, fields[2]))
                return 0;
        decode_octal(fields[4]);
        return add_user(search, "mounted at %s", fields[4]);
}

static int add_mounts(struct search *search, int process)
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

static int search_process(struct search *search, int proc, const char *pid)
{
        _cleanup_close_ int process = openat(proc, pid, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char comm[32];
        bool worker;
        int r = 0;

        if (process < 0 || !runs_program(process))
                return 0; /* or gone meanwhile */
        read_comm(process, comm);
        worker = is_worker(comm);
        if (!worker && is_new_namespace(search, process))
                r = add_mounts(search, process);
        if (r < 0 || is_prober(comm))
                return r;
        if (has_open(search, process) || (!worker && has_mapped(search, process)))
                r = add_user(search, "process %s (%s)", pid, comm);
        return r;
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

static int search_swaps(struct search *search)
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
                line[strcspn(line, " \t\n")] = '\0';
                decode_octal(line);
                if (disk_name_in_path(search->disk, line))
                        r = add_user(search, "swap on %s", line);
        }
        return r;
}

static int add_stacked(void *userdata, const char *phrase)
{
        return add_user(userdata, "%s", phrase);
}

int disk_users_find(const struct disk_users_roots *roots, int number, struct disk_users *ret)
{
        struct disk_users found = {};
        _cleanup_free_ struct search *search = calloc(1, sizeof(*search));
        int r;

        if (!search)
                return -ENOMEM;
        search->roots = roots;
        search->found = &found;
        snprintf(search->disk, sizeof(search->disk), "ublkb%d", number);
        r = disk_stack_find(roots->sys, search->disk, add_stacked, search);
        if (r >= 0)
                r = search_swaps(search);
        if (r >= 0)
                r = search_processes(search);
        if (r < 0) {
                disk_users_clear(&found);
                return r;
        }
        *ret = found;
        return 0;
}

void disk_users_clear(struct disk_users *users)
{
        for (size_t i = 0; i < users->count; i++)
                free(users->items[i]);
        *users = (struct disk_users){};
}
