/* SPDX-License-Identifier: MIT */
/* What this machine can do, and the problems of its state directory. */
#include "ublkd/host/host.h"

#include "ublkd/base/cleanup.h"

#include <assert.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

enum { ROOM_LEAST = 1 << 20 }; /* bytes: the largest spec in a request */

/* Open a regular file only: reading a FIFO would wait for a writer. */
static FILE *open_file(const char *path)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat info;
        FILE *file;

        if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
                return NULL;
        file = fdopen(fd, "re");
        if (file)
                (void)TAKE_FD(fd);
        return file;
}

static const char *const group_files[] = {"/etc/group", "/usr/lib/group"}; /* the other: nss-altfiles */

static bool find_group(const char *path, const char *name, gid_t *ret)
{
        _cleanup_fclose_ FILE *file = open_file(path);
        const struct group *group;

        while (file && (group = fgetgrent(file)))
                if (strcmp(group->gr_name, name) == 0) {
                        *ret = group->gr_gid;
                        return true;
                }
        return false;
}

static char *find_group_name(const char *path, gid_t gid)
{
        _cleanup_fclose_ FILE *file = open_file(path);
        const struct group *group;

        while (file && (group = fgetgrent(file)))
                if (group->gr_gid == gid)
                        return strdup(group->gr_name);
        return NULL;
}

gid_t host_find_group(const char *const *paths, size_t count, const char *name)
{
        gid_t gid = 0;

        for (size_t i = 0; i < count; i++)
                if (find_group(paths[i], name, &gid))
                        return gid;
        return 0;
}

/* Read the files instead of calling getgrnam(), which may wait for a server on the network. System groups are always
 * in a file. */
gid_t host_group(const char *name)
{
        return host_find_group(group_files, ARRAY_SIZE(group_files), name);
}

char *host_find_group_name(const char *const *paths, size_t count, gid_t gid)
{
        char *name = NULL;

        for (size_t i = 0; i < count && !name; i++)
                name = find_group_name(paths[i], gid);
        return name;
}

char *host_group_name(gid_t gid)
{
        return host_find_group_name(group_files, ARRAY_SIZE(group_files), gid);
}

int host_read(struct host *host)
{
        struct utsname name;
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);
        char *kernel;

        if (uname(&name) < 0)
                return -errno;
        kernel = strdup(name.release);
        if (!kernel)
                return -ENOMEM;
        free(host->kernel);
        host->kernel = kernel;
        host->disk_group = host_group("disk");
        host->walls = kernel_walls_read();
        host->cpus = cpus > 0 ? (unsigned)cpus : 1;
        return 0;
}

/* A file system that reports no blocks is never full. */
void host_read_room(const char *directory, struct state_room *ret)
{
        struct statvfs room;

        *ret = (struct state_room){.answer = STATE_ANSWERS};
        if (statvfs(directory, &room) < 0 || room.f_blocks == 0)
                return;
        ret->limited = true;
        ret->bytes = (uint64_t)(geteuid() == 0 ? room.f_bfree : room.f_bavail) * room.f_frsize;
}

const char *host_database_file(enum database_file which)
{
        static const char *const names[] = {
                [DATABASE_FILE_MAIN] = "ublkd.db", [DATABASE_FILE_WAL] = "ublkd.db-wal"};

        static_assert(ARRAY_SIZE(names) == _DATABASE_FILE_MAX, "every file has a name");
        return names[which];
}

static struct file_size size_of(const char *directory, const char *name)
{
        char path[PATH_MAX];
        struct stat info;
        int n = snprintf(path, sizeof(path), "%s/%s", directory, name);

        if (n < 0 || (size_t)n >= sizeof(path) || stat(path, &info) < 0)
                return (struct file_size){};
        return (struct file_size){.known = true, .bytes = (uint64_t)info.st_size};
}

void host_read_sizes(const char *directory, struct file_size ret[_DATABASE_FILE_MAX])
{
        for (unsigned i = 0; i < _DATABASE_FILE_MAX; i++)
                ret[i] = size_of(directory, host_database_file((enum database_file)i));
}

int host_report_state(struct host *host, const char *directory, const struct state_room *room, int error)
{
        int r;

        problem_list_clear(&host->state);
        if (room->answer == STATE_HANGS)
                return problem_add(&host->state, ETIMEDOUT, "", "StateDirectoryHangs",
                        "The file system of the state directory %s does not answer: devices cannot be "
                        "created or changed until it does. Check its server; a local file system is the "
                        "right place for the state directory",
                        directory);
        if (room->limited && room->bytes < ROOM_LEAST) {
                r = problem_add(&host->state, ENOSPC, "", "StateDirectoryFull",
                        "The file system of the state directory %s has %" PRIu64
                        " KiB left: when it is full, devices cannot be created or changed, and events are "
                        "lost when ublkd exits; make room",
                        directory, room->bytes / 1024);
                return r < 0 ? r : 1;
        }
        if (error == -ENOLINK)
                return problem_add(&host->state, -error, "", "DatabaseGone",
                        "The database in %s was deleted or moved away while ublkd runs: devices cannot be "
                        "created or changed, and events are lost when ublkd exits. Restart ublkd: the "
                        "workers continue to serve, and 'ublkctl adopt --all' takes over their disks",
                        directory);
        if (error < 0)
                return problem_add(&host->state, -error, "", "StateDirectoryFails",
                        "Writing events to the database in %s failed: %s; they are lost when ublkd exits. "
                        "Check the file system, and its limits for this user",
                        directory, strerror(-error));
        return 0;
}

void host_clear(struct host *host)
{
        free(host->kernel);
        problem_list_clear(&host->problems);
        problem_list_clear(&host->state);
        problem_list_clear(&host->settings);
        problem_list_clear(&host->workers);
        problem_list_clear(&host->files);
        foreign_disks_clear(&host->foreign);
        adoptables_clear(&host->adoptable);
        *host = (struct host){};
}
