/* SPDX-License-Identifier: MIT */
/* A look that can hang: at a file of a server that does not answer.
 *
 * The process writes four texts for each problem (errno, pointer, reason, detail), each ended by a NUL, and
 * one more NUL at the end. What lacks that end is not known. */
#include "targets/loop/look_apart.h"

#include "ublkd/base/clock.h"
#include "ublkd/base/reading.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
        ANSWER_FD = 3, /* in the process */
        ANSWER_MAX = 1 << 20,
};

/* ---- in the process ---- */

/* Its worker's lock, claim and channel must not outlive the worker because the look hangs. */
static bool leave_worker(int fd, pid_t worker)
{
        return dup2(fd, ANSWER_FD) >= 0 && close_range(ANSWER_FD + 1, ~0U, 0) >= 0
               && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == worker;
}

static void write_problems(const struct problem_list *problems)
{
        for (size_t i = 0; i < problems->count; i++) {
                const struct problem *problem = &problems->items[i];

                (void)dprintf(ANSWER_FD, "%d%c%s%c%s%c%s%c", problem->error, '\0', problem->pointer, '\0',
                        problem->reason, '\0', problem->detail, '\0');
        }
        (void)dprintf(ANSWER_FD, "%c", '\0');
}

static void look_and_exit(
        int (*look)(const void *data, struct problem_list *sharing), const void *data, int fd, pid_t worker)
{
        struct problem_list found = {};

        if (leave_worker(fd, worker) && look(data, &found) >= 0)
                write_problems(&found);
        _exit(EXIT_SUCCESS);
}

/* ---- the answer ---- */

static int read_answer(int fd, int patience, struct reading *answer)
{
        int64_t deadline = clock_msec(CLOCK_MONOTONIC) + patience, left;
        struct pollfd events = {.fd = fd, .events = POLLIN};
        int r = 1;

        while (r > 0) {
                left = deadline - clock_msec(CLOCK_MONOTONIC);
                r = left > 0 ? poll(&events, 1, (int)left) : 0;
                if (r == 0)
                        return -ETIMEDOUT;
                r = r > 0 ? reading_step(answer, fd, ANSWER_MAX) : errno == EINTR ? 1 : -errno;
        }
        return r;
}

/* Cuts the next text out of what is left. NULL: it has no end. */
static const char *take_text(const char **at, const char *end)
{
        const char *text = *at, *nul = memchr(text, '\0', (size_t)(end - text));

        if (nul)
                *at = nul + 1;
        return nul ? text : NULL;
}

static int take_problems(const struct reading *answer, struct problem_list *sharing)
{
        const char *at = answer->text, *end = at + answer->size, *error, *pointer, *reason, *detail;

        while ((error = take_text(&at, end)) && *error) {
                pointer = take_text(&at, end);
                reason = pointer ? take_text(&at, end) : NULL;
                detail = reason ? take_text(&at, end) : NULL;
                if (!detail)
                        return -EPIPE;
                if (problem_add(sharing, atoi(error), pointer, reason, "%s", detail) < 0)
                        return -ENOMEM;
        }
        return error ? 0 : -EPIPE;
}

/* ---- the whole ---- */

/* One that does not die yet is reaped by the parent of this process. */
static void end_process(pid_t pid, bool hangs)
{
        if (hangs)
                (void)kill(pid, SIGKILL);
        while (waitpid(pid, NULL, hangs ? WNOHANG : 0) < 0 && errno == EINTR) {}
}

int look_apart(int (*look)(const void *data, struct problem_list *sharing), const void *data, int patience,
        struct problem_list *sharing)
{
        _cleanup_(reading_clear) struct reading answer = {};
        _cleanup_close_ int read_end = -1, write_end = -1;
        pid_t worker = getpid(), pid;
        int fds[2], r;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        read_end = fds[0];
        write_end = fds[1];
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                look_and_exit(look, data, write_end, worker);
        write_end = close_fd(write_end);
        r = read_answer(read_end, patience, &answer);
        end_process(pid, r < 0);
        return r < 0 ? r : take_problems(&answer, sharing);
}
