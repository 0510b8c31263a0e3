/* SPDX-License-Identifier: MIT */
/* Which worker serves the disk, for the service manager. No library: a machine with many disks has a process for each. */
#include "units/follow/served_by.h"

#include "ublkd/base/cgroup_line.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/base/file_io.h"

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define WORKER_GROUP "worker-" /* and the pid: docs/architecture.md */

enum {
        MESSAGE_SIZE = 512,
        GROUP_SIZE = 192, /* one that is longer is not that of a worker of the service, and is cut */
};

/* Return whether it is sent. `flags`: as of send(2). */
static bool notify(const char *message, int flags)
{
        const char *path = getenv("NOTIFY_SOCKET");
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        size_t length = path ? strlen(path) : 0;
        _cleanup_close_ int fd = -1;

        if (length == 0 || length >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
                return false;
        memcpy(address.sun_path, path, length);
        if (path[0] == '@')
                address.sun_path[0] = '\0';
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        return fd >= 0
               && sendto(fd, message, strlen(message), MSG_NOSIGNAL | flags, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length))
                          >= 0;
}

/* Return whether the service manager has it. What was not sent is sent by the next look. */
static bool show(struct served_by *served, const char *text)
{
        char message[MESSAGE_SIZE];

        if (strcmp(text, served->shown) == 0)
                return true;
        snprintf(message, sizeof(message), "STATUS=%s", text);
        if (!notify(message, MSG_DONTWAIT))
                return false;
        snprintf(served->shown, sizeof(served->shown), "%s", text);
        return true;
}

static void release(struct served_by *served)
{
        if (served->worker >= 0)
                close(served->worker);
        served->worker = -1;
}

/* Read which worker the mark has, if it is not the mark of the last look. */
static void find(struct served_by *served, const char *path)
{
        char line[64] = "";
        struct stat info;
        int pid;

        if (stat(path, &info) < 0
                || (info.st_ino == served->mark && info.st_mtim.tv_sec == served->written.tv_sec
                        && info.st_mtim.tv_nsec == served->written.tv_nsec))
                return;
        served->mark = info.st_ino;
        served->written = info.st_mtim;
        release(served);
        served->pid = 0;
        served->settled = false;
        if (read_line_at(AT_FDCWD, path, line, sizeof(line)) < 0 || sscanf(line, "worker %d", &pid) != 1
                || pid <= 0)
                return; /* an earlier ublkd has written it */
        served->pid = pid;
        served->worker = pidfd_open(pid, 0);
}

/* Write the control group of the worker, "" if it is not known. Return whether it is the worker's own: it moves there a moment
 * after the start of the disk. */
static bool group_of(pid_t pid, char *text, size_t size)
{
        char path[64], all[CGROUP_TEXT_SIZE], *group = NULL;

        snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
        if (read_text_at(AT_FDCWD, path, all, sizeof(all)) > 0)
                (void)cgroup_line_find(all, &group);
        snprintf(text, size, "%s%s", group ? " in " : "", group ? group : "");
        return strstr(text, "/" WORKER_GROUP) != NULL;
}

static bool is_over(int worker)
{
        return worker < 0 || poll(&(struct pollfd){.fd = worker, .events = POLLIN}, 1, 0) > 0;
}

void served_by_begin(struct served_by *served)
{
        *served = (struct served_by){.worker = -1};
        served->ready = notify("READY=1", 0);
}

void served_by_look(struct served_by *served, const char *path)
{
        char group[GROUP_SIZE + 8] = "", text[sizeof(served->shown)];
        bool own = false;

        served->ready = served->ready || notify("READY=1", MSG_DONTWAIT);
        if (!served->ready)
                return;
        find(served, path);
        if (served->pid > 0 && !served->settled)
                own = group_of(served->pid, group, sizeof(group));
        if (served->pid == 0) {
                (void)show(served, "in service");
        } else if (is_over(served->worker)) { /* asked last: the pid is still its own */
                release(served);
                snprintf(text, sizeof(text), "worker %d has ended; I/O waits for the next one",
                        (int)served->pid);
                (void)show(served, text);
        } else if (!served->settled) {
                snprintf(text, sizeof(text), "served by worker %d%s", (int)served->pid, group);
                served->settled = show(served, text) && own;
        }
}

void served_by_end(struct served_by *served)
{
        release(served);
        (void)show(served, "waits until the disk is unused, and takes it down");
}
