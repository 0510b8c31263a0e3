/* SPDX-License-Identifier: MIT */
/* Which process has locked what, read from /proc. */
#include "targets/worker/disk/lock_holder.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/base/file_io.h"
#include "ublkd/values/quantity.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_SIZE = 8192 };

/* "4: OFDLCK ADVISORY WRITE -1 08:01:4711 0 EOF", as fs/locks.c (lock_get_status) prints it. */
static bool collides(const char *line, ino_t number, const struct flock *wanted)
{
        uint64_t start, end = UINT64_MAX, first = (uint64_t)wanted->l_start,
                        last = wanted->l_len > 0 ? first + (uint64_t)wanted->l_len - 1 : UINT64_MAX;
        char kind[16], type[16], until[24];
        uintmax_t inode;

        if (sscanf(line, "%*d: %15s %*s %15s %*d %*x:%*x:%ju %" SCNu64 " %23s", kind, type, &inode, &start,
                    until)
                != 5)
                return false;
        if (strcmp(kind, "OFDLCK") != 0 && strcmp(kind, "POSIX") != 0)
                return false;
        if (strcmp(until, "EOF") != 0)
                end = strtoull(until, NULL, 10);
        return inode == number && start <= last && first <= end
               && (wanted->l_type == F_WRLCK || strcmp(type, "WRITE") == 0);
}

static bool has_lock(int folder, const char *descriptor, ino_t number, const struct flock *wanted)
{
        static const char mark[] = "lock:";
        char text[TEXT_SIZE];

        if (read_text_at(folder, descriptor, text, sizeof(text)) <= 0)
                return false;
        for (const char *line = strstr(text, mark); line; line = strstr(line, mark)) {
                line += strlen(mark);
                if (collides(line, number, wanted))
                        return true;
        }
        return false;
}

static bool process_has_lock(int process, ino_t number, const struct flock *wanted)
{
        int fd = openat(process, "fdinfo", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_closedir_ DIR *descriptors = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;

        if (!descriptors) {
                close_fd(fd);
                return false;
        }
        while ((entry = readdir(descriptors)))
                if (is_number(entry->d_name) && has_lock(fd, entry->d_name, number, wanted))
                        return true;
        return false;
}

static const char worker_command[] = "ublkd-worker";

static enum holder_kind kind_of_command(const char *command)
{
        static const struct {
                const char *command;
                enum holder_kind kind;
        } of_ublkd[] = {
                {"ublkd",        HOLDER_SUPERVISOR},
                {worker_command, HOLDER_WORKER    }
        };

        for (size_t i = 0; i < ARRAY_SIZE(of_ublkd); i++)
                if (strcmp(command, of_ublkd[i].command) == 0)
                        return of_ublkd[i].kind;
        return HOLDER_OTHER;
}

/* "ublkd-worker data": what a worker serves. Others may have secrets among their arguments. */
static void add_name_of_disk(int process, char name[static LOCK_HOLDER_NAME_SIZE])
{
        char arguments[LOCK_HOLDER_NAME_SIZE + PATH_MAX] = "";
        ssize_t n = read_text_at(process, "cmdline", arguments, sizeof(arguments));

        if (n > 0 && strlen(arguments) + 1 < (size_t)n)
                snprintf(name, LOCK_HOLDER_NAME_SIZE, "%s %.64s", worker_command,
                        arguments + strlen(arguments) + 1);
}

static bool name_process(int process, pid_t pid, struct lock_holder *ret)
{
        struct lock_holder holder = {.pid = pid};

        if (read_line_at(process, "comm", holder.name, sizeof(holder.name)) <= 0)
                return false;
        holder.kind = kind_of_command(holder.name);
        if (holder.kind == HOLDER_WORKER)
                add_name_of_disk(process, holder.name);
        *ret = holder;
        return true;
}

static int open_process(const char *proc, const char *pid)
{
        char path[PATH_MAX];

        if (snprintf(path, sizeof(path), "%s/%s", proc, pid) >= (int)sizeof(path))
                return -ENAMETOOLONG;
        return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool lock_holder_name(const char *proc, pid_t pid, struct lock_holder *ret)
{
        _cleanup_close_ int process = -1;
        char text[16];

        snprintf(text, sizeof(text), "%d", (int)pid);
        process = open_process(proc, text);
        return process >= 0 && name_process(process, pid, ret);
}

bool lock_holder_find(const char *proc, ino_t number, const struct flock *wanted, struct lock_holder *ret)
{
        _cleanup_closedir_ DIR *processes = opendir(proc);
        const struct dirent *entry;
        bool found = false;

        while (processes && (entry = readdir(processes))) {
                _cleanup_close_ int process =
                        is_number(entry->d_name) ? open_process(proc, entry->d_name) : -1;

                struct lock_holder holder;

                if (process < 0 || !process_has_lock(process, number, wanted)
                        || !name_process(process, (pid_t)strtol(entry->d_name, NULL, 10), &holder)
                        || (found && holder.kind <= ret->kind))
                        continue;
                found = true;
                *ret = holder;
        }
        return found;
}
