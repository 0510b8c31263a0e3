/* SPDX-License-Identifier: MIT */
/* Describes ublk disks that belong to no record of this ublkd. */
#include "ublkd/host/foreign_disk.h"

#include "ublkd/base/file_io.h"
#include "ublkd/driver/ublk_ctl.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/net.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* As in /proc/PID/comm. */
static const char worker_comm[] = "ublkd-worker";

enum { OUR_UID_SHIFT = 16 }; /* see device_cookie(): other servers keep flags in the lower bits */

/* Read a file of /proc/PID, as read_text_at(). */
static ssize_t read_file(const char *proc, pid_t pid, const char *name, char *text, size_t size)
{
        char path[PATH_MAX];

        *text = '\0';
        if (snprintf(path, sizeof(path), "%s/%d/%s", proc, (int)pid, name) >= (int)sizeof(path))
                return -ENAMETOOLONG;
        return read_text_at(AT_FDCWD, path, text, size);
}

static bool read_comm(const char *proc, pid_t pid, char *text, size_t size)
{
        ssize_t n = pid > 0 ? read_file(proc, pid, "comm", text, size) : 0;

        text[strcspn(text, "\n")] = '\0';
        return n > 0;
}

/* Read the third field of /proc/PID/stat. The name before it may contain any byte. */
static bool is_alive(const char *proc, pid_t pid)
{
        char text[512];
        const char *name_end;

        if (read_file(proc, pid, "stat", text, sizeof(text)) <= 0)
                return false;
        name_end = strrchr(text, ')');
        return name_end && strncmp(name_end, ") Z", 3) != 0;
}

/* Inodes of the connected SOCK_SEQPACKET sockets of the machine. Initialise with zeros. */
struct inodes {
        unsigned long *items;
        size_t count, room;
};

static void inodes_clear(struct inodes *inodes)
{
        free(inodes->items);
}

static bool inodes_add(struct inodes *inodes, unsigned long inode)
{
        if (inodes->count == inodes->room) {
                size_t room = inodes->room ? 2 * inodes->room : 64;
                unsigned long *items = reallocarray(inodes->items, room, sizeof(*items));

                if (!items)
                        return false;
                inodes->items = items;
                inodes->room = room;
        }
        inodes->items[inodes->count++] = inode;
        return true;
}

static bool inodes_contain(const struct inodes *inodes, unsigned long inode)
{
        for (size_t i = 0; i < inodes->count; i++)
                if (inodes->items[i] == inode)
                        return true;
        return false;
}

/* Read the inodes from /proc/net/unix; its columns are those of unix_seq_show() in net/unix/af_unix.c. */
static void find_connected(const char *proc, struct inodes *ret)
{
        _cleanup_fclose_ FILE *sockets = NULL;
        char path[PATH_MAX], line[512];

        if (snprintf(path, sizeof(path), "%s/net/unix", proc) >= (int)sizeof(path))
                return;
        sockets = fopen(path, "re");
        while (sockets && fgets(line, sizeof(line), sockets)) {
                unsigned type, state;
                unsigned long inode;

                if (sscanf(line, "%*s %*x %*x %*x %x %x %lu", &type, &state, &inode) == 3
                        && type == SOCK_SEQPACKET && state == SS_CONNECTED && !inodes_add(ret, inode))
                        return;
        }
}

static bool is_connected(const struct inodes *connected, int folder, const char *descriptor)
{
        char link[64];
        unsigned long inode;
        ssize_t n = readlinkat(folder, descriptor, link, sizeof(link) - 1);

        if (n < 0)
                return false;
        link[n] = '\0';
        return sscanf(link, "socket:[%lu]", &inode) == 1 && inodes_contain(connected, inode);
}

/* A worker has such a connection exactly while a running ublkd manages it. */
static bool is_supervised(const char *proc, pid_t pid)
{
        _cleanup_(inodes_clear) struct inodes connected = {};
        _cleanup_closedir_ DIR *descriptors = NULL;
        const struct dirent *entry;
        char path[PATH_MAX];

        if (snprintf(path, sizeof(path), "%s/%d/fd", proc, (int)pid) >= (int)sizeof(path))
                return false;
        find_connected(proc, &connected);
        descriptors = opendir(path);
        while (descriptors && (entry = readdir(descriptors)))
                if (is_connected(&connected, dirfd(descriptors), entry->d_name))
                        return true;
        return false;
}

/* A worker's first argument is the name of its device. */
static void look_at_worker(const char *proc, struct foreign_server *server)
{
        char arguments[PATH_MAX + 256] = "";
        ssize_t n;

        server->is_ublkd = true;
        server->managed = is_supervised(proc, server->pid);
        n = read_file(proc, server->pid, "cmdline", arguments, sizeof(arguments));
        if (n > 0 && strlen(arguments) + 1 < (size_t)n)
                snprintf(server->process, sizeof(server->process), "%s %.64s", worker_comm,
                        arguments + strlen(arguments) + 1);
}

struct foreign_server foreign_server_look(const char *proc, pid_t pid)
{
        struct foreign_server server = {};

        if (!is_alive(proc, pid) || !read_comm(proc, pid, server.process, sizeof(server.process)))
                return (struct foreign_server){};
        server.pid = pid;
        if (strcmp(server.process, worker_comm) == 0)
                look_at_worker(proc, &server);
        return server;
}

static void write_server(const struct foreign_disk *disk, char *text, size_t size)
{
        if (!disk->looked)
                snprintf(text, size, "process %d, which ublkd could not examine in time, serves it",
                        (int)disk->server_pid);
        else if (disk->server.pid > 0)
                snprintf(
                        text, size, "process %d (%s) serves it", (int)disk->server.pid, disk->server.process);
        else
                snprintf(text, size, "no process serves it");
}

static void write_detail(struct foreign_disk *disk, const char *name)
{
        int number = disk->number;
        char server[FOREIGN_PROCESS_SIZE + 64];

        write_server(disk, server, sizeof(server));
        if (disk->maker == FOREIGN_BY_OTHER)
                snprintf(disk->detail, sizeof(disk->detail),
                        "/dev/ublkb%d was created by another ublk server than ublkd, and %s. ublkd does not "
                        "touch it; that server can remove it.",
                        number, server);
        else if (name)
                snprintf(disk->detail, sizeof(disk->detail),
                        "/dev/ublkb%d belongs to no device here: this database has no record of it, and %s. "
                        "ublkd does not touch it. The runtime directory has its record: 'ublkctl adopt %s' "
                        "takes it over without an interruption.",
                        number, server, name);
        else if (!disk->looked)
                snprintf(disk->detail, sizeof(disk->detail),
                        "/dev/ublkb%d belongs to no device here: another ublkd created it, and %s. ublkd "
                        "does not touch it; whether that ublkd is running is unknown.",
                        number, server);
        else if (disk->server.managed)
                snprintf(disk->detail, sizeof(disk->detail),
                        "/dev/ublkb%d belongs to another ublkd, which is running, and %s. This ublkd does "
                        "not touch it; change or remove it there ('ublkctl --socket').",
                        number, server);
        else
                snprintf(disk->detail, sizeof(disk->detail),
                        "/dev/ublkb%d belongs to no device here: a ublkd with another database "
                        "(--state-dir) created it, and %s. ublkd does not touch it, and its backing store "
                        "is in use. 'ublkctl adopt' cannot take it over: the runtime directory has no "
                        "record of it. Start ublkd with the directories of the ublkd that created it.",
                        number, server);
}

/* Linux 6.12 keeps the pid of a dead server, which another process may have by now. */
static bool may_have_server(const struct kernel_device *kernel)
{
        return kernel->server_pid > 0 && kernel->state == KERNEL_STATE_LIVE;
}

struct foreign_disk foreign_disk_of(const struct kernel_device *kernel)
{
        static const char *const states[_KERNEL_STATE_MAX] = {
                [KERNEL_STATE_DEAD] = "added",
                [KERNEL_STATE_LIVE] = "live",
                [KERNEL_STATE_QUIESCED] = "quiesced",
                [KERNEL_STATE_FAIL_IO] = "failing",
        };
        bool served = may_have_server(kernel);

        return (struct foreign_disk){
                .number = kernel->number,
                .cookie = kernel->cookie,
                .state = states[kernel->state],
                .maker = kernel->cookie >> OUR_UID_SHIFT ? FOREIGN_BY_UBLKD : FOREIGN_BY_OTHER,
                .server_pid = served ? kernel->server_pid : 0,
        };
}

void foreign_disk_describe(struct foreign_disk *disk, const struct foreign_server *server, const char *name)
{
        disk->looked = server || disk->server_pid == 0;
        disk->server = server ? *server : (struct foreign_server){};
        if (disk->server.is_ublkd)
                disk->maker = FOREIGN_BY_UBLKD;
        disk->has_record = name;
        if (name) /* only one ublkd uses the runtime directory at a time: this one */
                disk->server.managed = false;
        write_detail(disk, name);
}

const char *foreign_maker_to_string(enum foreign_maker maker)
{
        static const char *const names[_FOREIGN_MAKER_MAX] = {
                [FOREIGN_BY_UBLKD] = "ublkd",
                [FOREIGN_BY_OTHER] = "other",
        };

        return names[maker];
}

pid_t foreign_disk_server(const struct foreign_disk *disk)
{
        return disk->server.pid > 0 ? disk->server.pid : disk->looked ? 0 : disk->server_pid;
}

bool foreign_disk_is_problem(const struct foreign_disk *disk)
{
        return disk->maker == FOREIGN_BY_UBLKD && (disk->looked || disk->has_record) && !disk->server.managed
               && !disk->held;
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

const struct foreign_disk *foreign_disks_find(
        const struct foreign_disks *disks, const struct foreign_disk *disk)
{
        for (size_t i = 0; i < disks->count; i++)
                if (disks->items[i].number == disk->number && disks->items[i].cookie == disk->cookie)
                        return &disks->items[i];
        return NULL;
}

bool foreign_disks_contain(const struct foreign_disks *disks, const struct foreign_disk *disk)
{
        const struct foreign_disk *found = foreign_disks_find(disks, disk);

        return found && found->looked == disk->looked && found->server.managed == disk->server.managed;
}

void foreign_disks_clear(struct foreign_disks *disks)
{
        free(disks->items);
        *disks = (struct foreign_disks){};
}
