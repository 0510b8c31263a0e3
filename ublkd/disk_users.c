/* Who uses /dev/ublkbN: what /proc and /sys tell.
 *
 * Of processes, paths decide, not device numbers: a stat() of other people's files could hang on a dead
 * network or FUSE mount, while the kernel prints a path without asking anybody. */
#include "ublkd/disk_users.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum {
        NAMESPACES_MAX = 256, /* mount tables that are looked at */
        CHECK_MSEC = 2000,
        ANSWER_MAX = 4096,
        ANSWER_FD = 3, /* in the process of its own */
};

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

/* Whether `name` is the disk or one of its partitions: "ublkb0", "ublkb0p1", but not "ublkb01". */
static bool is_disk(const struct search *search, const char *name)
{
        size_t length = strlen(search->disk);

        if (strncmp(name, search->disk, length) != 0)
                return false;
        return name[length] == '\0' || (name[length] == 'p' && is_number(name + length + 1));
}

/* A path of a block node, also one that was removed while it was open ("/dev/ublkb0 (deleted)"). */
static bool is_disk_path(const struct search *search, const char *path)
{
        static const char deleted[] = " (deleted)";
        const char *slash = strrchr(path, '/');
        char name[64];
        size_t length;

        if (path[0] != '/' || !slash || strlen(slash + 1) >= sizeof(name))
                return false;
        strcpy(name, slash + 1);
        length = strlen(name);
        if (length >= sizeof(deleted) && strcmp(name + length - (sizeof(deleted) - 1), deleted) == 0)
                name[length - (sizeof(deleted) - 1)] = '\0';
        return is_disk(search, name);
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
                        && is_disk_path(search, target))
                        return true;
        return false;
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
                found = path && is_disk_path(search, path);
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
        return slash && is_disk(search, slash + 1);
}

/* One line of mountinfo: "36 35 98:0 /root /mount/point options - type source super-options". */
static int add_mount(struct search *search, char *line)
{
        char *fields[5], *rest = line, *separator = strstr(line, " - "), *source;

        if (!separator)
                return 0;
        *separator = '\0';
        source = separator + strlen(" - ");
        (void)strsep(&source, " ");
        source = strsep(&source, " ");
        if (!source)
                return 0;
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
                fields[i] = strsep(&rest, " ");
                if (!fields[i])
                        return 0;
        }
        decode_octal(source);
        if (!is_disk_path(search, source) && !is_disk_number(search, fields[2]))
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
                if (is_disk_path(search, line))
                        r = add_user(search, "swap on %s", line);
        }
        return r;
}

/* The disks that are built on `path` (…/block/ublkb0 or a partition below it): dm, md, bcache. */
static int search_holders(struct search *search, const char *path)
{
        _cleanup_closedir_ DIR *dir = NULL;
        char holders[PATH_MAX];
        int r = 0, n = snprintf(holders, sizeof(holders), "%s/holders", path);

        if (n < 0 || (size_t)n >= sizeof(holders))
                return -ENAMETOOLONG;
        dir = opendir(holders);
        if (!dir)
                return 0;
        for (struct dirent *entry = readdir(dir); r >= 0 && entry; entry = readdir(dir))
                if (entry->d_name[0] != '.')
                        r = add_user(search, "part of /dev/%s", entry->d_name);
        return r;
}

static int search_all_holders(struct search *search)
{
        _cleanup_closedir_ DIR *dir = NULL;
        char disk[PATH_MAX - 300], partition[PATH_MAX];
        int r;

        snprintf(disk, sizeof(disk), "%s/block/%s", search->roots->sys, search->disk);
        r = search_holders(search, disk);
        dir = opendir(disk);
        if (!dir)
                return r;
        for (struct dirent *entry = readdir(dir); r >= 0 && entry; entry = readdir(dir)) {
                if (!is_disk(search, entry->d_name))
                        continue;
                snprintf(partition, sizeof(partition), "%s/%s", disk, entry->d_name);
                r = search_holders(search, partition);
        }
        return r;
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
        r = search_all_holders(search);
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

/* "process 4211 (fio), mounted at /mnt and 3 more". */
static void join(const struct disk_users *users, char *text, size_t size)
{
        size_t used = 0;

        text[0] = '\0';
        for (size_t i = 0; i < users->count && used < size; i++)
                used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", users->items[i]);
        if (users->dropped && used < size)
                snprintf(text + used, size - used, " and %zu more", users->dropped);
}

/* In the process of its own: one byte says how it went, the users' names follow. */
static void answer(int fd, int number)
{
        const struct disk_users_roots roots = {.proc = "/proc", .sys = "/sys"};
        struct disk_users users = {};
        char text[ANSWER_MAX];
        int r = disk_users_find(&roots, number, &users);

        if (r < 0)
                snprintf(text, sizeof(text), "E%d", -r);
        else if (users.count == 0)
                strcpy(text, "N");
        else {
                text[0] = 'Y';
                join(&users, text + 1, sizeof(text) - 1);
        }
        disk_users_clear(&users);
        (void)!write(fd, text, strlen(text)); /* less than PIPE_BUF: all or nothing */
}
static_assert(ANSWER_MAX <= PIPE_BUF, "an answer fits into the pipe");

/* In the grandchild: it has a copy of every descriptor of the supervisor (locks, sockets), and must not keep
 * them from a supervisor that is started while it hangs. */
static void search_apart(int fd, int number)
{
        sigset_t none;

        if (dup2(fd, ANSWER_FD) < 0 || close_range(ANSWER_FD + 1, ~0U, 0) < 0)
                return;
        sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)signal(SIGALRM, SIG_DFL);
        (void)alarm(CHECK_MSEC / 1000 + 1);
        answer(ANSWER_FD, number);
}

/* Starts the search as a grandchild, so that it is init and not the loop that waits for its end. The
 * descriptor to read the answer from, or -errno. */
static int start_search(int number)
{
        _cleanup_close_ int read_end = -1, write_end = -1;
        int pipe_fds[2];
        pid_t child;

        if (pipe2(pipe_fds, O_CLOEXEC) < 0)
                return -errno;
        read_end = pipe_fds[0];
        write_end = pipe_fds[1];
        child = fork();
        if (child < 0)
                return -errno;
        if (child == 0) {
                if (fork() == 0)
                        search_apart(write_end, number);
                _exit(EXIT_SUCCESS);
        }
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
        return TAKE_FD(read_end);
}

/* Its length; 0: the search ended without one; -ETIMEDOUT. */
static ssize_t read_answer(int fd, char text[static ANSWER_MAX + 1])
{
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        ssize_t n;
        int r;

        do
                r = poll(&poll_fd, 1, CHECK_MSEC);
        while (r < 0 && errno == EINTR);
        if (r <= 0)
                return r < 0 ? -errno : -ETIMEDOUT;
        n = read(fd, text, ANSWER_MAX);
        if (n < 0)
                return -errno;
        text[n] = '\0';
        return n;
}

int disk_users_check(int number, struct problem_list *problems)
{
        _cleanup_close_ int fd = start_search(number);
        char text[ANSWER_MAX + 1];
        ssize_t n;
        int r;

        if (fd < 0)
                return fd;
        n = read_answer(fd, text);
        if (n == -ETIMEDOUT || n == 0) {
                r = problem_add(problems, EBUSY, "", "InUse",
                        "It could not be found out within %d s who uses /dev/ublkb%d; try again.",
                        CHECK_MSEC / 1000, number);
                return r < 0 ? r : 1;
        }
        if (n < 0)
                return (int)n;
        if (text[0] == 'N')
                return 0;
        if (text[0] == 'E')
                return -atoi(text + 1);
        r = problem_add(problems, EBUSY, "", "InUse", "/dev/ublkb%d is in use: %s.", number, text + 1);
        return r < 0 ? r : 1;
}
