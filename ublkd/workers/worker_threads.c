/* SPDX-License-Identifier: MIT */
/* Reads what the threads of a worker do. */
#include "ublkd/workers/worker_threads.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/file_io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct thread {
        const char *name; /* within the text */
        enum progress_thread state;
        bool exits;
        uint64_t cpu_usec;
};

/* include/linux/sched.h: a thread that has begun to exit, or has taken the signal that ends it. get_signal() clears the
 * pending bit, and do_exit() then waits for the I/O of the thread (io_uring_files_cancel()) before it sets PF_EXITING. */
enum { PF_EXITING = 0x4, PF_SIGNALED = 0x400 };

static enum progress_thread state_of(char letter)
{
        switch (letter) {
        case 'R':
                return THREAD_RUNS;
        case 'T':
        case 't':
                return THREAD_STOPPED;
        case 'S':
        case 'D':
        case 'I':
                return THREAD_SLEEPS;
        default:
                return THREAD_UNKNOWN; /* it ends */
        }
}

/* Take a line of proc_pid_stat(5) apart; the name may hold anything, so it ends at the last parenthesis. */
static int parse(char *text, struct thread *ret)
{
        char *name = strchr(text, '('), *end = strrchr(text, ')');
        unsigned long long user, system, pending = 0;
        unsigned flags;
        char letter;

        if (!name || !end || end < name)
                return -EBADMSG;
        *end = '\0';
        if (sscanf(end + 1,
                    " %c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %llu %llu"
                    " %*d %*d %*d %*d %*d %*d %*u %*u %*d %*u %*u %*u %*u %*u %*u %llu",
                    &letter, &flags, &user, &system, &pending)
                < 4)
                return -EBADMSG;
        *ret = (struct thread){
                .name = name + 1,
                .state = state_of(letter),
                .exits = (flags & (PF_EXITING | PF_SIGNALED)) || (pending & 1U << (SIGKILL - 1)),
                .cpu_usec = (user + system) * (1000000 / (uint64_t)sysconf(_SC_CLK_TCK)),
        };
        return 0;
}

static int read_thread(int dir, const char *path, char *text, size_t size, struct thread *ret)
{
        ssize_t n = read_text_at(dir, path, text, size);

        return n < 0 ? (int)n : parse(text, ret);
}

int worker_process_stopped(const char *proc, pid_t pid)
{
        struct thread thread;
        char path[256], text[512];
        int r;

        if (snprintf(path, sizeof(path), "%s/%d/stat", proc, (int)pid) >= (int)sizeof(path))
                return -ENAMETOOLONG;
        r = read_thread(AT_FDCWD, path, text, sizeof(text), &thread);
        return r < 0 ? r : thread.state == THREAD_STOPPED;
}

static void take_thread(const struct thread *thread, struct progress_queue *queues, unsigned count)
{
        unsigned queue;
        int end = 0;

        if (sscanf(thread->name, "queue-%4u%n", &queue, &end) < 1 || thread->name[end] != '\0'
                || queue >= count)
                return;
        queues[queue].thread = thread->state;
        queues[queue].cpu_usec = thread->cpu_usec;
}

static int open_tasks(const char *proc, pid_t pid, DIR **ret)
{
        char path[256];

        if (snprintf(path, sizeof(path), "%s/%d/task", proc, (int)pid) >= (int)sizeof(path))
                return -ENAMETOOLONG;
        *ret = opendir(path);
        return *ret ? 0 : -errno;
}

/* Return whether there was another thread. ret->name: within `text`. */
static bool next_thread(DIR *tasks, char *text, size_t size, struct thread *ret)
{
        const struct dirent *entry;
        char path[32];

        while ((entry = readdir(tasks)))
                if (snprintf(path, sizeof(path), "%.20s/stat", entry->d_name) < (int)sizeof(path)
                        && entry->d_name[0] != '.' && read_thread(dirfd(tasks), path, text, size, ret) >= 0)
                        return true;
        return false;
}

int worker_threads_look(const char *proc, pid_t pid, struct progress_queue *queues, unsigned count)
{
        _cleanup_closedir_ DIR *tasks = NULL;
        struct thread thread;
        char text[512];
        int r = open_tasks(proc, pid, &tasks);

        while (r >= 0 && next_thread(tasks, text, sizeof(text), &thread))
                take_thread(&thread, queues, count);
        return r;
}

int worker_process_exiting(const char *proc, pid_t pid)
{
        _cleanup_closedir_ DIR *tasks = NULL;
        struct thread thread;
        char text[512];
        unsigned count = 0;
        int r = open_tasks(proc, pid, &tasks);

        if (r < 0)
                return r;
        for (; next_thread(tasks, text, sizeof(text), &thread); count++)
                if (!thread.exits)
                        return 0;
        return count > 0 ? 1 : -ESRCH;
}
