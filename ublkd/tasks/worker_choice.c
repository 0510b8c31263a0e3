/* SPDX-License-Identifier: MIT */
/* Which program the workers are. */
#include "ublkd/tasks/worker_choice.h"

#include "ublkd/base/log.h"

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

/* Write the path of the worker beside this program, where a build tree has it. Return 0, or -errno: why it cannot
 * be run. */
static int find_worker_beside(char *path, size_t size)
{
        char self[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        char *slash;
        int length;

        if (n < 0)
                return -errno;
        self[n] = '\0';
        slash = strrchr(self, '/');
        if (slash)
                *slash = '\0';
        length = snprintf(path, size, "%s/ublkd-worker", self);
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
                r = find_worker_beside(path, size);
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
