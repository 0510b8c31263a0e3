/* SPDX-License-Identifier: MIT */
/* Runs mkfs and fsck. */
#include "ublkd/filesystems/filesystem_program.h"
#include "ublkd/filesystems/filesystem_walls.h"

#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>

enum {
        CHILD_DISK_FD = 3,
        CHILD_WALLS_FD, /* brings the parent -errno of a wall that is missing, or of execve() */
        CHILD_FIRST_FREE,
        ARGUMENTS_MAX = 10,
};

#define CHILD_DISK_PATH "/proc/self/fd/3"

/* "UUID" stands for that of the file system, "UUID=" for the option of xfs with it. No option forces mkfs to make what it
 * refuses, but where a file system is made again: mkfs.xfs refuses a disk with a part of one. Without a terminal mkfs.ext4
 * does not look for data, so the caller has looked. Discards are left out. */
static const struct {
        const char *program; /* in one of `places` */
        const char *arguments[ARGUMENTS_MAX];
} programs[_FILESYSTEM_TASK_MAX][_FILESYSTEM_KIND_MAX] = {
        [FILESYSTEM_MAKES] =
                {
                                    [FILESYSTEM_EXT4] = {"mkfs.ext4",
                                {"-q", "-E", "nodiscard", "-U", "UUID", CHILD_DISK_PATH}},
                                    [FILESYSTEM_XFS] = {"mkfs.xfs", {"-q", "-K", "-m", "UUID=", CHILD_DISK_PATH}},
                                    },
        [FILESYSTEM_REMAKES] =
                {
                                    [FILESYSTEM_EXT4] = {"mkfs.ext4",
                                {"-q", "-E", "nodiscard", "-U", "UUID", CHILD_DISK_PATH}},
                                    [FILESYSTEM_XFS] = {"mkfs.xfs", {"-q", "-f", "-K", "-m", "UUID=", CHILD_DISK_PATH}},
                                    },
        [FILESYSTEM_CHECKS] =
                {
                                    [FILESYSTEM_EXT4] = {"e2fsck", {"-f", "-n", CHILD_DISK_PATH}},
                                    [FILESYSTEM_XFS] = {"xfs_repair", {"-n", CHILD_DISK_PATH}},
                                    },
};

static const char *const places[] = {"/usr/sbin", "/sbin", "/usr/bin"};

enum { PROGRAM_PATH_SIZE = 64, OPTION_SIZE = 64 };

static bool find_program(const char *name, char ret[static PROGRAM_PATH_SIZE])
{
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                snprintf(ret, PROGRAM_PATH_SIZE, "%s/%s", places[i], name);
                if (access(ret, X_OK) == 0)
                        return true;
        }
        return false;
}

static void execute(const char *path, const struct filesystem_go *go)
{
        static char *const environment[] = {
                (char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", (char *)"LC_ALL=C", NULL};
        const char *const *words = programs[go->task][go->kind].arguments;
        const char *arguments[ARGUMENTS_MAX + 2] = {programs[go->task][go->kind].program};
        char option[OPTION_SIZE];

        snprintf(option, sizeof(option), "uuid=%s", go->uuid);
        for (size_t i = 0; i < ARGUMENTS_MAX && words[i]; i++)
                arguments[i + 1] = strcmp(words[i], "UUID") == 0    ? go->uuid
                                   : strcmp(words[i], "UUID=") == 0 ? option
                                                                    : words[i];
        (void)execve(path, (char *const *)arguments, environment);
}

/* In the child, which never returns. */
static _Noreturn void run_child(
        const char *path, int disk, int output, int walls, const struct filesystem_go *go, pid_t parent)
{
        const struct filesystem_walls around = {
                .disk = CHILD_DISK_FD, .writes = go->task != FILESYSTEM_CHECKS, .parent = parent};
        int high[] = {fcntl(disk, F_DUPFD, CHILD_FIRST_FREE), fcntl(output, F_DUPFD, CHILD_FIRST_FREE),
                fcntl(walls, F_DUPFD, CHILD_FIRST_FREE)};
        int null = open("/dev/null", O_RDWR), r = 0;

        if (null < 0 || high[0] < 0 || high[1] < 0 || high[2] < 0 || dup2(null, STDIN_FILENO) < 0
                || dup2(high[1], STDOUT_FILENO) < 0 || dup2(high[1], STDERR_FILENO) < 0
                || dup2(high[0], CHILD_DISK_FD) < 0 || dup2(high[2], CHILD_WALLS_FD) < 0
                || fcntl(CHILD_WALLS_FD, F_SETFD, FD_CLOEXEC) < 0
                || close_range(CHILD_FIRST_FREE, ~0U, 0) < 0)
                r = -errno;
        if (r >= 0)
                r = filesystem_walls_raise(&around);
        if (r >= 0) {
                execute(path, go);
                r = -errno;
        }
        (void)!write(CHILD_WALLS_FD, &r, sizeof(r));
        _exit(EXIT_FAILURE);
}

/* Keep what is printed first, and read the rest, so that the program goes on. */
static void read_output(int fd, char text[static FILESYSTEM_TEXT_SIZE])
{
        size_t length = 0;
        char chunk[1024];
        ssize_t n;

        while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
                size_t room = FILESYSTEM_TEXT_SIZE - 1 - length, take;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        break;
                take = (size_t)n < room ? (size_t)n : room;
                memcpy(text + length, chunk, take);
                length += take;
        }
        text[length] = '\0';
}

static void judge(struct filesystem_report *report, int wall_error, int status)
{
        report->status = status;
        if (wall_error < 0) {
                report->outcome = FILESYSTEM_NO_WALLS;
                report->error = wall_error;
        } else
                report->outcome =
                        WIFEXITED(status) && WEXITSTATUS(status) == 0 ? FILESYSTEM_DONE : FILESYSTEM_FAILED;
}

static void watch_child(pid_t child, int output, int walls, struct filesystem_report *report)
{
        int wall_error = 0, status = 0;

        read_output(output, report->text);
        while (waitpid(child, &status, 0) < 0)
                if (errno != EINTR) {
                        report->outcome = FILESYSTEM_FAILED;
                        report->error = -errno;
                        return;
                }
        if (read(walls, &wall_error, sizeof(wall_error)) != sizeof(wall_error))
                wall_error = 0; /* the program was executed */
        judge(report, wall_error, status);
}

void filesystem_program_run(int disk, const struct filesystem_go *go, struct filesystem_report *ret)
{
        _cleanup_close_ int output = -1, walls = -1;
        char path[PROGRAM_PATH_SIZE];
        int outputs[2], wall_ends[2];
        pid_t parent = getpid(), child;

        ret->outcome = FILESYSTEM_FAILED;
        if (!find_program(programs[go->task][go->kind].program, path)) {
                ret->outcome = FILESYSTEM_NO_PROGRAM;
                return;
        }
        if (pipe2(outputs, O_CLOEXEC) < 0) {
                ret->error = -errno;
                return;
        }
        output = outputs[0];
        if (pipe2(wall_ends, O_CLOEXEC) < 0) {
                ret->error = -errno;
                close_fd(outputs[1]);
                return;
        }
        walls = wall_ends[0];
        child = fork();
        if (child == 0)
                run_child(path, disk, outputs[1], wall_ends[1], go, parent);
        if (child < 0)
                ret->error = -errno;
        close_fd(outputs[1]);
        close_fd(wall_ends[1]);
        if (child > 0)
                watch_child(child, output, walls, ret);
}
