/* What a ublk device that belongs to no record here is. */
#include "ublkd/foreign_disk.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/ublk_ctl.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/net.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* As /proc/PID/comm has it. */
static const char worker_comm[] = "ublkd-worker";

DEFINE_CLEANUP(DIR, closedir);
DEFINE_CLEANUP(FILE, fclose);

enum { OUR_UID_SHIFT = 16 }; /* see device_cookie(): below that other servers keep flags of theirs */

/* The bytes that were read, or -1; the text ends with a NUL. */
static ssize_t read_file(const char *proc, pid_t pid, const char *name, char *text, size_t size)
{
        char path[PATH_MAX];
        _cleanup_close_ int fd = -1;
        ssize_t n;

        *text = '\0';
        if (snprintf(path, sizeof(path), "%s/%d/%s", proc, (int)pid, name) >= (int)sizeof(path))
                return -1;
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, size - 1);
        text[n > 0 ? n : 0] = '\0';
        return n;
}

static bool read_comm(const char *proc, pid_t pid, char *text, size_t size)
{
        ssize_t n = pid > 0 ? read_file(proc, pid, "comm", text, size) : 0;

        text[strcspn(text, "\n")] = '\0';
        return n > 0;
}

/* The third field of /proc/PID/stat; the name before it may hold anything. */
static bool is_alive(const char *proc, pid_t pid)
{
        char text[512];
        const char *name_end;

        if (read_file(proc, pid, "stat", text, sizeof(text)) <= 0)
                return false;
        name_end = strrchr(text, ')');
        return name_end && strncmp(name_end, ") Z", 3) != 0;
}

/* Whether the socket of this inode is a connected SOCK_SEQPACKET; the columns are those of net/unix/af_unix.c
 * (unix_seq_show). */
static bool is_connected_seqpacket(FILE *sockets, unsigned long wanted)
{
        char line[512];

        rewind(sockets);
        while (fgets(line, sizeof(line), sockets)) {
                unsigned type, state;
                unsigned long inode;

                if (sscanf(line, "%*s %*x %*x %*x %x %x %lu", &type, &state, &inode) == 3 && inode == wanted)
                        return type == SOCK_SEQPACKET && state == SS_CONNECTED;
        }
        return false;
}

static bool has_supervisor(int folder, DIR *descriptors, FILE *sockets)
{
        const struct dirent *entry;

        while ((entry = readdir(descriptors))) {
                char link[64];
                unsigned long inode;
                ssize_t n = readlinkat(folder, entry->d_name, link, sizeof(link) - 1);

                if (n < 0)
                        continue;
                link[n] = '\0';
                if (sscanf(link, "socket:[%lu]", &inode) == 1 && is_connected_seqpacket(sockets, inode))
                        return true;
        }
        return false;
}

/* A worker has such a connection while, and only while, a ublkd that runs looks after it. */
static bool is_supervised(const char *proc, pid_t pid)
{
        _cleanup_(closedir_pointer) DIR *descriptors = NULL;
        _cleanup_(fclose_pointer) FILE *sockets = NULL;
        char path[PATH_MAX];

        if (snprintf(path, sizeof(path), "%s/net/unix", proc) >= (int)sizeof(path))
                return false;
        sockets = fopen(path, "re");
        if (!sockets || snprintf(path, sizeof(path), "%s/%d/fd", proc, (int)pid) >= (int)sizeof(path))
                return false;
        descriptors = opendir(path);
        return descriptors && has_supervisor(dirfd(descriptors), descriptors, sockets);
}

/* What serves it; a worker's first argument is the name of its device. */
static void look_at_process(const char *proc, const struct kernel_device *kernel, struct foreign_disk *disk)
{
        char arguments[PATH_MAX + 256] = "";
        ssize_t n;

        /* 6.12 keeps the pid of a server that is dead, which may be somebody else's by now. */
        if (kernel->server_pid <= 0 || kernel->state != KERNEL_STATE_LIVE
                || !is_alive(proc, kernel->server_pid)
                || !read_comm(proc, kernel->server_pid, disk->process, sizeof(disk->process)))
                return;
        disk->pid = kernel->server_pid;
        if (strcmp(disk->process, worker_comm) != 0)
                return;
        disk->maker = FOREIGN_BY_UBLKD;
        disk->managed = is_supervised(proc, disk->pid);
        n = read_file(proc, disk->pid, "cmdline", arguments, sizeof(arguments));
        if (n > 0 && strlen(arguments) + 1 < (size_t)n)
                snprintf(disk->process, sizeof(disk->process), "%s %.64s", worker_comm,
                        arguments + strlen(arguments) + 1);
}

static void describe(struct foreign_disk *disk)
{
        int number = disk->number;
        char server[FOREIGN_PROCESS_SIZE + 64] = "nobody serves it";

        if (disk->pid > 0)
                snprintf(server, sizeof(server), "process %d (%s) serves it", (int)disk->pid, disk->process);
        if (disk->maker == FOREIGN_BY_OTHER)
                snprintf(disk->detail, sizeof(disk->detail),
                        "/dev/ublkb%d was made by another ublk server than ublkd, and %s. It is left alone; "
                        "who made it can remove it.",
                        number, server);
        else if (disk->managed)
                snprintf(disk->detail, sizeof(disk->detail),
                        "/dev/ublkb%d belongs to another ublkd, which runs, and %s. It is left alone; change "
                        "or remove it there ('ublkctl --socket').",
                        number, server);
        else
                snprintf(disk->detail, sizeof(disk->detail),
                        "/dev/ublkb%d belongs to no device here: it was made by ublkd with another database "
                        "(--state-dir), and %s. It is left alone, and its backing store is in use. Start "
                        "ublkd with that database to manage it; if that is lost, end its users and remove "
                        "the disk with another ublk program ('rublk del -n %d', a crate) or by a reboot.",
                        number, server, number);
}

struct foreign_disk foreign_disk_describe(const char *proc, const struct kernel_device *kernel)
{
        static const char *const states[_KERNEL_STATE_MAX] = {
                [KERNEL_STATE_DEAD] = "added",
                [KERNEL_STATE_LIVE] = "live",
                [KERNEL_STATE_QUIESCED] = "quiesced",
                [KERNEL_STATE_FAIL_IO] = "failing",
        };
        struct foreign_disk disk = {
                .number = kernel->number,
                .cookie = kernel->cookie,
                .state = states[kernel->state],
                .maker = kernel->cookie >> OUR_UID_SHIFT ? FOREIGN_BY_UBLKD : FOREIGN_BY_OTHER,
        };

        look_at_process(proc, kernel, &disk);
        describe(&disk);
        return disk;
}

const char *foreign_maker_to_string(enum foreign_maker maker)
{
        static const char *const names[_FOREIGN_MAKER_MAX] = {
                [FOREIGN_BY_UBLKD] = "ublkd",
                [FOREIGN_BY_OTHER] = "other",
        };

        return names[maker];
}

bool foreign_disk_is_problem(const struct foreign_disk *disk)
{
        return disk->maker == FOREIGN_BY_UBLKD && !disk->managed;
}

int foreign_disks_add(struct foreign_disks *disks, const struct foreign_disk *disk)
{
        struct foreign_disk *items;

        if (disks->count == FOREIGN_DISKS_MAX)
                return 0;
        items = reallocarray(disks->items, disks->count + 1, sizeof(*items));
        if (!items)
                return -ENOMEM;
        items[disks->count++] = *disk;
        disks->items = items;
        return 0;
}

bool foreign_disks_contain(const struct foreign_disks *disks, const struct foreign_disk *disk)
{
        for (size_t i = 0; i < disks->count; i++)
                if (disks->items[i].number == disk->number && disks->items[i].cookie == disk->cookie
                        && disks->items[i].managed == disk->managed)
                        return true;
        return false;
}

void foreign_disks_clear(struct foreign_disks *disks)
{
        free(disks->items);
        *disks = (struct foreign_disks){};
}
