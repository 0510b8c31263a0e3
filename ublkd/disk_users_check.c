/* disk_users_check(): the search in a process of its own, which may hang without harm. */
#include "ublkd/disk_users.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum {
        CHECK_MSEC = 2000,
        ANSWER_MAX = 4096,
        ANSWER_FD = 3, /* in the process of its own */
};

/* "process 4211 (fio), mounted at /mnt and 3 more". */
static void join(const struct disk_users *users, char *text, size_t size)
{
        size_t used = 0;

        text[0] = '\0';
        for (size_t i = 0; i < users->count && used < size; i++)
                used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", users->items[i]);
        if (users->dropped && used < size)
                snprintf(text + used, size - used, " and %zu more", users->dropped);
}

/* In the process of its own: one byte says how it went, the users' names follow. */
static void answer(int fd, int number)
{
        const struct disk_users_roots roots = {.proc = "/proc", .sys = "/sys"};
        struct disk_users users = {};
        char text[ANSWER_MAX];
        int r = disk_users_find(&roots, number, &users);

        if (r < 0)
                snprintf(text, sizeof(text), "E%d", -r);
        else if (users.count == 0)
                strcpy(text, "N");
        else {
                text[0] = 'Y';
                join(&users, text + 1, sizeof(text) - 1);
        }
        disk_users_clear(&users);
        (void)!write(fd, text, strlen(text)); /* less than PIPE_BUF: all or nothing */
}
static_assert(ANSWER_MAX <= PIPE_BUF, "an answer fits into the pipe");

/* In the grandchild: it has a copy of every descriptor of the supervisor (locks, sockets), and must not keep
 * them from a supervisor that is started while it hangs. */
static void search_apart(int fd, int number)
{
        sigset_t none;

        if (dup2(fd, ANSWER_FD) < 0 || close_range(ANSWER_FD + 1, ~0U, 0) < 0)
                return;
        sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)signal(SIGALRM, SIG_DFL);
        (void)alarm(CHECK_MSEC / 1000 + 1);
        answer(ANSWER_FD, number);
}

/* Starts the search as a grandchild, so that it is init and not the loop that waits for its end. The
 * descriptor to read the answer from, or -errno. */
static int start_search(int number)
{
        _cleanup_close_ int read_end = -1, write_end = -1;
        int pipe_fds[2];
        pid_t child;

        if (pipe2(pipe_fds, O_CLOEXEC) < 0)
                return -errno;
        read_end = pipe_fds[0];
        write_end = pipe_fds[1];
        child = fork();
        if (child < 0)
                return -errno;
        if (child == 0) {
                if (fork() == 0)
                        search_apart(write_end, number);
                _exit(EXIT_SUCCESS);
        }
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
        return TAKE_FD(read_end);
}

/* Its length; 0: the search ended without one; -ETIMEDOUT. */
static ssize_t read_answer(int fd, char text[static ANSWER_MAX + 1])
{
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        ssize_t n;
        int r;

        do
                r = poll(&poll_fd, 1, CHECK_MSEC);
        while (r < 0 && errno == EINTR);
        if (r <= 0)
                return r < 0 ? -errno : -ETIMEDOUT;
        n = read(fd, text, ANSWER_MAX);
        if (n < 0)
                return -errno;
        text[n] = '\0';
        return n;
}

int disk_users_check(int number, struct problem_list *problems)
{
        _cleanup_close_ int fd = start_search(number);
        char text[ANSWER_MAX + 1];
        ssize_t n;
        int r;

        if (fd < 0)
                return fd;
        n = read_answer(fd, text);
        if (n == -ETIMEDOUT || n == 0) {
                r = problem_add(problems, EBUSY, "", "InUse",
                        "It could not be found out within %d s who uses /dev/ublkb%d; try again.",
                        CHECK_MSEC / 1000, number);
                return r < 0 ? r : 1;
        }
        if (n < 0)
                return (int)n;
        if (text[0] == 'N')
                return 0;
        if (text[0] == 'E')
                return -atoi(text + 1);
        r = problem_add(problems, EBUSY, "", "InUse", "/dev/ublkb%d is in use: %s.", number, text + 1);
        return r < 0 ? r : 1;
}
