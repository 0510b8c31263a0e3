/* SPDX-License-Identifier: MIT */
/* The functions with which worker_proc.c reaches a process: their real modules are not linked, or wrapped. */
#include "tests/stand_in/worker_stand_in.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/offload/close_away.h"
#include "ublkd/workers/worker_mark.h"
#include "ublkd/workers/worker_peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>

enum {
        INDICES = 1 << 20,
        FIRST_PIDFD = STAND_IN_NOTHING + 1,
        FIRST_CHANNEL = FIRST_PIDFD + INDICES,
        END = FIRST_CHANNEL + INDICES,
        FIRST_USER = 70000,
};

struct group_limits worker_stand_in_limits;

static bool is_pidfd(int fd)
{
        return fd >= FIRST_PIDFD && fd < FIRST_CHANNEL;
}

static bool is_channel(int fd)
{
        return fd >= FIRST_CHANNEL && fd < END;
}

/* ---- start and connect ---- */

void worker_start_count(struct worker_start *start _unused_, int change _unused_)
{
}

void worker_start_keep_network(struct worker_start *start _unused_, int fd)
{
        close_fd(fd);
}

const char *worker_start_program(const struct worker_start *start _unused_)
{
        return "/usr/libexec/ublkd-worker";
}

int worker_start_user(const struct worker_start *start _unused_, int number, uint32_t *ret)
{
        *ret = FIRST_USER + (uint32_t)number;
        return 0;
}

int worker_start_run(struct worker_start *start _unused_, const struct worker_msg *config,
        const int fds[static _CONFIG_FD_MAX], const struct group_limits *limits, struct worker_process *ret)
{
        int index, r = on_worker_start(config, &fds[CONFIG_FD_STORE], &index);

        if (r < 0)
                return r;
        worker_stand_in_limits = limits ? *limits : (struct group_limits){};
        *ret = (struct worker_process){.pid = worker_stand_in_pid(index),
                .pidfd = FIRST_PIDFD + index,
                .channel = FIRST_CHANNEL + index};
        return 0;
}

int __wrap_runtime_dir_bind_worker(struct runtime_dir *dir, const char *uid);
int __wrap_runtime_dir_bind_worker(struct runtime_dir *dir _unused_, const char *uid _unused_)
{
        return STAND_IN_NOTHING;
}

int __wrap_runtime_dir_connect_worker(struct runtime_dir *dir, const char *uid);
int __wrap_runtime_dir_connect_worker(struct runtime_dir *dir _unused_, const char *uid)
{
        int index, r = on_worker_connect(uid, &index);

        return r < 0 ? r : FIRST_CHANNEL + index;
}

int worker_peer_find(int channel, pid_t *ret_pid)
{
        *ret_pid = worker_stand_in_pid(channel - FIRST_CHANNEL);
        return FIRST_PIDFD + channel - FIRST_CHANNEL;
}

int worker_mark_write(
        struct runtime_dir *dir _unused_, const char *uid _unused_, pid_t pid _unused_, int pidfd _unused_)
{
        return 0;
}

int worker_mark_compare(
        struct runtime_dir *dir _unused_, const char *uid _unused_, pid_t pid _unused_, int pidfd _unused_)
{
        return 1;
}

struct worker_groups *worker_start_groups(const struct worker_start *start _unused_)
{
        return NULL;
}

int worker_mark_find(struct runtime_dir *dir _unused_, const struct worker_groups *groups _unused_,
        const char *uid, pid_t *ret_pid)
{
        int index, r = on_worker_marked(uid, &index);

        if (r < 0)
                return r;
        *ret_pid = worker_stand_in_pid(index);
        return FIRST_PIDFD + index;
}

int __real_sd_event_add_io(sd_event *event, sd_event_source **ret, int fd, uint32_t events,
        sd_event_io_handler_t handler, void *userdata);
int __wrap_sd_event_add_io(sd_event *event, sd_event_source **ret, int fd, uint32_t events,
        sd_event_io_handler_t handler, void *userdata);
int __wrap_sd_event_add_io(sd_event *event, sd_event_source **ret, int fd, uint32_t events,
        sd_event_io_handler_t handler, void *userdata)
{
        struct worker_stand_in *worker;
        int r;

        if (!is_pidfd(fd) && !is_channel(fd))
                return __real_sd_event_add_io(event, ret, fd, events, handler, userdata);
        /* The source is never due: the functions below call its handler. */
        r = sd_event_add_time(event, ret, CLOCK_MONOTONIC, UINT64_MAX, 0, NULL, NULL);
        if (r < 0)
                return r;
        worker = worker_stand_in_at(fd - (is_pidfd(fd) ? FIRST_PIDFD : FIRST_CHANNEL));
        worker->proc = userdata;
        if (is_channel(fd))
                worker->message = handler;
        else {
                worker->death = handler;
                worker->death_source = *ret;
        }
        return 0;
}

/* ---- messages ---- */

int worker_msg_send(int fd, const struct worker_msg *msg)
{
        return on_worker_sent(fd - FIRST_CHANNEL, msg);
}

/* Nothing has arrived: it has closed the channel, unless it is dead. */
int worker_report_receive(int fd, struct worker_msg *ret, int *ret_fds, unsigned room)
{
        struct worker_stand_in *worker = worker_stand_in_at(fd - FIRST_CHANNEL);

        if (!worker->incoming)
                return worker->death ? 0 : -EAGAIN;
        *ret = *worker->incoming;
        worker->incoming = NULL;
        for (unsigned i = 0; i < STORE_LIST_MAX; i++)
                if (i < room)
                        ret_fds[i] = worker->incoming_fds[i];
                else if (worker->incoming_fds[i] >= 0)
                        close_away(worker->incoming_fds[i]);
        return 1;
}

static void wake(int index, struct worker_msg *msg, const int *fds, unsigned count)
{
        struct worker_stand_in *worker = worker_stand_in_at(index);

        worker->incoming = msg;
        for (unsigned i = 0; i < STORE_LIST_MAX; i++)
                worker->incoming_fds[i] = i < count ? fds[i] : -1;
        (void)worker->message(NULL, FIRST_CHANNEL + index, EPOLLIN, worker->proc);
}

bool stand_in_is_read(int index)
{
        const struct worker_stand_in *worker = worker_stand_in_at(index);

        return worker && worker->message;
}

/* Through the codec, so that it is a message which a process could have sent, and the receiver owns it. */
static void copy_message(const struct worker_msg *msg, struct worker_msg *ret)
{
        _cleanup_free_ char *text = NULL;

        if (worker_msg_encode(msg, &text) < 0 || worker_msg_decode(text, strlen(text), ret) < 0)
                abort();
}

void stand_in_sends_fds(int index, const struct worker_msg *msg, const int *fds, unsigned count)
{
        struct worker_msg copy;

        if (!stand_in_is_read(index)) {
                for (unsigned i = 0; i < count; i++)
                        close_away(fds[i]);
                return;
        }
        copy_message(msg, &copy);
        wake(index, &copy, fds, count);
}

void stand_in_sends(int index, const struct worker_msg *msg, int fd)
{
        stand_in_sends_fds(index, msg, &fd, 1);
}

void stand_in_leaves(int index)
{
        if (stand_in_is_read(index))
                wake(index, NULL, NULL, 0);
}

/* ---- the end ---- */

int __wrap_worker_process_exiting(const char *proc, pid_t pid);
int __wrap_worker_process_exiting(const char *proc _unused_, pid_t pid)
{
        return on_worker_exiting(pid);
}

void stand_in_dies(int index)
{
        struct worker_stand_in *worker = worker_stand_in_at(index);
        sd_event_io_handler_t death;

        if (!worker || !worker->death)
                return;
        death = worker->death;
        worker->death = NULL;
        (void)death(worker->death_source, FIRST_PIDFD + index, EPOLLIN, worker->proc);
}

int __real_pidfd_send_signal(int pidfd, int sig, siginfo_t *info, unsigned flags);
int __wrap_pidfd_send_signal(int pidfd, int sig, siginfo_t *info, unsigned flags);
int __wrap_pidfd_send_signal(int pidfd, int sig, siginfo_t *info, unsigned flags)
{
        if (!is_pidfd(pidfd))
                return __real_pidfd_send_signal(pidfd, sig, info, flags);
        on_worker_killed(pidfd - FIRST_PIDFD);
        return 0;
}

int __real_waitid(idtype_t type, id_t id, siginfo_t *ret, int options);
int __wrap_waitid(idtype_t type, id_t id, siginfo_t *ret, int options);
int __wrap_waitid(idtype_t type, id_t id, siginfo_t *ret, int options)
{
        int pidfd = type == P_PIDFD ? (int)id : -1;

        if (!is_pidfd(pidfd))
                return __real_waitid(type, id, ret, options);
        ret->si_pid =
                on_worker_waited(pidfd - FIRST_PIDFD, ret) ? worker_stand_in_pid(pidfd - FIRST_PIDFD) : 0;
        return 0;
}

static void close_channel(int index)
{
        struct worker_stand_in *worker = worker_stand_in_at(index);

        if (worker)
                worker->message = NULL;
        on_worker_closed(index);
}

/* The last that the supervisor closes. */
static void close_pidfd(int index)
{
        struct worker_stand_in *worker = worker_stand_in_at(index);

        if (worker)
                *worker = (struct worker_stand_in){};
        on_worker_freed(index);
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
        if (fd < STAND_IN_NOTHING || fd >= END)
                return __real_close(fd);
        if (is_channel(fd))
                close_channel(fd - FIRST_CHANNEL);
        else if (is_pidfd(fd))
                close_pidfd(fd - FIRST_PIDFD);
        return 0;
}
