/* SPDX-License-Identifier: MIT */
/* Which programs ublkd executes. */
#include "ublkd/tasks/program_choice.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/log.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Return 0, or -errno: why the program cannot be executed. EACCES returns 0: then ublkd does not run as root,
 * which the control plane reports later. */
static int check_program(const char *path)
{
        struct stat info;

        if (stat(path, &info) < 0)
                return errno == EACCES ? 0 : -errno;
        if (!S_ISREG(info.st_mode))
                return S_ISDIR(info.st_mode) ? -EISDIR : -EACCES;
        return access(path, X_OK) < 0 ? -errno : 0;
}

/* Write the path of a program beside this one, where a build tree has it. Return 0, or -errno: why it cannot be run. */
static int find_beside(const char *name, char *path, size_t size)
{
        char self[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        char *slash;
        int length;

        path[0] = '\0'; /* a message may name it */
        if (n < 0)
                return -errno;
        self[n] = '\0';
        slash = strrchr(self, '/');
        if (slash)
                *slash = '\0';
        length = snprintf(path, size, "%s/%s", self, name);
        return length > 0 && (size_t)length < size ? check_program(path) : -ENAMETOOLONG;
}

int worker_choose(const char *named, char *path, size_t size)
{
        int r;

        if (named) {
                r = check_program(named);
                if (r >= 0 && snprintf(path, size, "%s", named) >= (int)size)
                        r = -ENAMETOOLONG;
        } else {
                r = find_beside("ublkd-worker", path, size);
                if (r == -ENOENT) {
                        snprintf(path, size, "%s", UBLKD_WORKER_PATH);
                        r = check_program(UBLKD_WORKER_PATH);
                }
        }
        if (r == -ENOENT && !named)
                log_error(NULL,
                        "The program ublkd-worker was not found beside ublkd, nor at %s; install it there, "
                        "or name it with --worker",
                        UBLKD_WORKER_PATH);
        else if (r < 0)
                log_error(NULL,
                        "The worker %s cannot be executed: %s; name the ublkd-worker that belongs to this "
                        "ublkd with --worker",
                        named ? named : path, strerror(-r));
        return r;
}

static int find_helper(char *path, size_t size)
{
        int r = find_beside("ublkd-helper", path, size);

        if (r != -ENOENT)
                return r;
        snprintf(path, size, "%s", UBLKD_HELPER_PATH);
        return check_program(path);
}

int helper_program_open(struct helper_program *ret)
{
        char path[PATH_MAX];
        int r = find_helper(path, sizeof(path));

        *ret = (struct helper_program){.fd = r < 0 ? -1 : open(path, O_PATH | O_CLOEXEC)};
        if (r >= 0 && ret->fd < 0)
                r = -errno;
        if (r < 0)
                log_error(NULL,
                        "The program ublkd-helper cannot be executed (%s): %s; install it there, from the "
                        "build that this ublkd is of",
                        path, strerror(-r));
        snprintf(ret->path, sizeof(ret->path), "/proc/%d/fd/%d", (int)getpid(), ret->fd);
        return r;
}

void helper_program_clear(struct helper_program *program)
{
        program->fd = close_fd(program->fd);
}
