/* SPDX-License-Identifier: MIT */
/* A look that can hang, as an event. */
#include "ublkd/offload/apart.h"

#include "ublkd/base/reading.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
        ANSWER_MAX = 16 * 1024 * 1024, /* a process that goes wrong writes no more than that */
        ANSWER_FD = 3,                 /* in the process */
};

/* A process that looks, or was killed and is not dead yet. */
struct looker {
        struct apart *apart;
        int pidfd;
        sd_event_source *death;
        bool given_up;
        struct looker *next;
};

struct apart {
        sd_event *event;
        struct apart_options options;
        struct looker *lookers; /* all that are not dead */
        struct looker *current; /* of the look under way, until it is dead; else NULL */
        sd_event_source *readable, *deadline;
        int pipe; /* -1: no look is under way */
        struct reading received;
};

DEFINE_CLEANUP(struct apart, apart_free);

/* ---- in the process ---- */

/* It has a copy of every descriptor of the supervisor (locks, sockets), and must not keep them from a
 * supervisor that is started while it hangs. */
static bool leave_supervisor(const struct apart *apart, int fd, pid_t supervisor)
{
        sigset_t none;

        if (dup2(fd, ANSWER_FD) < 0 || close_range(ANSWER_FD + 1, ~0U, 0) < 0)
                return false;
        sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        return prctl(PR_SET_NAME, apart->options.process) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0
               && getppid() == supervisor;
}

static void look_apart(const struct apart *apart, int fd, pid_t supervisor)
{
        FILE *answer = leave_supervisor(apart, fd, supervisor) ? fdopen(ANSWER_FD, "we") : NULL;

        if (!answer)
                return;
        apart->options.look(apart->options.userdata, answer);
        (void)fflush(answer);
}

/* ---- the end of a look ---- */

/* The process, if it is not dead yet, is left to on_death(). */
static void drop_look(struct apart *apart)
{
        apart->readable = sd_event_source_disable_unref(apart->readable);
        (void)sd_event_source_set_enabled(apart->deadline, SD_EVENT_OFF);
        apart->pipe = close_fd(apart->pipe);
        apart->current = NULL;
}

static void finish(struct apart *apart, int error)
{
        _cleanup_(reading_clear) struct reading answer = apart->received;

        apart->received = (struct reading){};
        drop_look(apart);
        apart->options.done(apart->options.userdata, error, answer.text, answer.size);
}

static void give_up(struct apart *apart)
{
        if (!apart->current)
                return;
        apart->current->given_up = true;
        (void)pidfd_send_signal(apart->current->pidfd, SIGKILL, NULL, 0);
}

/* 1; 0: that was all; -errno. */
static int receive(struct apart *apart)
{
        int r = reading_step(&apart->received, apart->pipe, ANSWER_MAX);

        return r == -EAGAIN ? 1 : r;
}

static int on_readable(
        sd_event_source *source _unused_, int fd _unused_, uint32_t events _unused_, void *userdata)
{
        struct apart *apart = userdata;
        int r = receive(apart);

        if (r > 0)
                return 0;
        if (r < 0)
                give_up(apart);
        finish(apart, r);
        return 0;
}

static int on_deadline(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct apart *apart = userdata;

        give_up(apart);
        (void)receive(apart); /* what is there already */
        finish(apart, -ETIMEDOUT);
        return 0;
}

/* ---- processes ---- */

static void looker_free(struct looker *looker)
{
        sd_event_source_disable_unref(looker->death);
        close_fd(looker->pidfd);
        free(looker);
}

static int on_death(sd_event_source *source _unused_, int fd, uint32_t events _unused_, void *userdata)
{
        struct looker *looker = userdata;
        struct apart *apart = looker->apart;

        (void)waitid(P_PIDFD, (id_t)fd, &(siginfo_t){}, WEXITED | WNOHANG);
        for (struct looker **at = &apart->lookers; *at; at = &(*at)->next)
                if (*at == looker) {
                        *at = looker->next;
                        break;
                }
        if (apart->current == looker)
                apart->current = NULL;
        looker_free(looker);
        if (!apart->lookers && apart->options.gone)
                apart->options.gone(apart->options.userdata);
        return 0;
}

static int watch_process(struct apart *apart, pid_t pid)
{
        struct looker *looker = calloc(1, sizeof(*looker));
        int r = -ENOMEM;

        if (looker) {
                *looker = (struct looker){.apart = apart, .pidfd = pidfd_open(pid, 0)};
                r = looker->pidfd < 0 ? -errno
                                      : sd_event_add_io(apart->event, &looker->death, looker->pidfd, EPOLLIN,
                                                on_death, looker);
        }
        if (r < 0) {
                (void)kill(pid, SIGKILL);
                while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {}
                if (looker)
                        looker_free(looker);
                return r;
        }
        looker->next = apart->lookers;
        apart->lookers = apart->current = looker;
        return 0;
}

static int start_process(struct apart *apart)
{
        _cleanup_close_ int read_end = -1, write_end = -1;
        pid_t supervisor = getpid(), pid;
        int fds[2], r;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        read_end = fds[0];
        write_end = fds[1];
        if (fcntl(read_end, F_SETFL, O_NONBLOCK) < 0)
                return -errno;
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0) {
                look_apart(apart, write_end, supervisor);
                _exit(EXIT_SUCCESS);
        }
        r = watch_process(apart, pid);
        if (r >= 0)
                r = sd_event_add_io(apart->event, &apart->readable, read_end, EPOLLIN, on_readable, apart);
        if (r >= 0)
                r = sd_event_source_set_time_relative(apart->deadline, apart->options.patience_usec);
        if (r >= 0)
                r = sd_event_source_set_enabled(apart->deadline, SD_EVENT_ONESHOT);
        if (r >= 0)
                apart->pipe = TAKE_FD(read_end);
        return r;
}

static size_t count_stuck(const struct apart *apart)
{
        size_t count = 0;

        for (const struct looker *looker = apart->lookers; looker; looker = looker->next)
                count += looker->given_up;
        return count;
}

static size_t stuck_max(const struct apart *apart)
{
        return apart->options.stuck_max ? apart->options.stuck_max : APART_STUCK_MAX;
}

int apart_begin(struct apart *apart)
{
        int r;

        if (apart->pipe >= 0)
                return -EBUSY;
        if (count_stuck(apart) >= stuck_max(apart))
                return -EDEADLK;
        r = start_process(apart);
        if (r < 0)
                apart_cancel(apart);
        return r;
}

void apart_cancel(struct apart *apart)
{
        give_up(apart);
        drop_look(apart);
        reading_clear(&apart->received);
}

bool apart_has_process(const struct apart *apart)
{
        return apart->lookers;
}

/* ---- the whole ---- */

int apart_new(sd_event *event, const struct apart_options *options, struct apart **ret)
{
        _cleanup_(apart_free_pointer) struct apart *apart = calloc(1, sizeof(*apart));
        int r;

        if (!apart)
                return -ENOMEM;
        apart->event = sd_event_ref(event);
        apart->pipe = -1;
        apart->options = *options;
        r = sd_event_add_time(event, &apart->deadline, CLOCK_MONOTONIC, UINT64_MAX, 1000, on_deadline, apart);
        if (r >= 0)
                r = sd_event_source_set_enabled(apart->deadline, SD_EVENT_OFF);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(apart);
        return 0;
}

struct apart *apart_free(struct apart *apart)
{
        if (!apart)
                return NULL;
        apart_cancel(apart);
        while (apart->lookers) {
                struct looker *looker = apart->lookers;

                apart->lookers = looker->next;
                (void)pidfd_send_signal(looker->pidfd, SIGKILL, NULL, 0); /* init, or our end, reaps it */
                looker_free(looker);
        }
        sd_event_source_disable_unref(apart->deadline);
        sd_event_unref(apart->event);
        free(apart);
        return NULL;
}
