/* SPDX-License-Identifier: MIT */
/* The process behind path_watch. One that is given up is killed, and keeps its place until it is seen dead: a
 * process that hangs in the kernel may never be. */
#include "ublkd/paths/path_process.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"
#include "ublkd/offload/proc_spawn.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
        PRIORITY_LATE = 10, /* nothing waits for it */
        REPORTS_PER_TURN = 64,
        STUCK_MAX = 4,   /* processes that were killed and are not dead */
        SILENCE_MAX = 2, /* pings without an answer */
        DELAY_MIN_USEC = 100 * 1000,
        DELAY_MAX_USEC = 60 * 1000 * 1000,
        ACCURACY_USEC = 10 * 1000,
};

struct place {
        struct path_process *process;
        uint64_t number;
        pid_t pid;
        int pidfd; /* -1: this place is free */
        sd_event_source *death;
};

struct path_process {
        sd_event *event;
        const char *program;
        uint64_t ping_usec;
        const struct path_process_handlers *handlers;
        void *owner;
        bool is_wanted;
        struct place places[STUCK_MAX + 1];
        struct place *active; /* NULL: none */
        int channel;          /* to the active one; -1 */
        sd_event_source *channel_source, *ping, *start;
        unsigned silence;    /* pings since it sent anything */
        uint64_t delay_usec; /* before the next start */
        uint64_t started_at, starts;
        bool is_crowded; /* the last start found no place */
};

DEFINE_CLEANUP(struct path_process, path_process_free);

static void set_timer(sd_event_source *timer, uint64_t delay)
{
        (void)sd_event_source_set_time(timer, monotonic_now() + delay); /* both fail only for a dead source */
        (void)sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

/* ---- the end ---- */

static void place_release(struct place *place)
{
        sd_event_source_disable_unref(place->death);
        close_fd(place->pidfd);
        *place = (struct place){.process = place->process, .pidfd = -1};
}

static struct place *find_place(struct path_process *process)
{
        for (size_t i = 0; i < ARRAY_SIZE(process->places); i++)
                if (process->places[i].pidfd < 0)
                        return &process->places[i];
        return NULL;
}

/* One that did well for long is replaced at once, others after ever longer delays. */
static uint64_t next_delay(struct path_process *process)
{
        uint64_t delay = monotonic_now() - process->started_at > DELAY_MAX_USEC ? 0 : process->delay_usec;

        process->delay_usec = delay == 0                   ? DELAY_MIN_USEC
                              : 2 * delay < DELAY_MAX_USEC ? 2 * delay
                                                           : DELAY_MAX_USEC;
        return delay;
}

static void drop(struct path_process *process)
{
        (void)pidfd_send_signal(process->active->pidfd, SIGKILL, NULL, 0);
        process->active = NULL;
        process->channel_source = sd_event_source_disable_unref(process->channel_source);
        process->channel = close_fd(process->channel);
        (void)sd_event_source_set_enabled(process->ping, SD_EVENT_OFF);
}

static void lose(struct path_process *process, enum path_process_loss loss)
{
        uint64_t number = process->active->number;

        drop(process);
        set_timer(process->start, next_delay(process));
        process->handlers->lost(process->owner, number, loss);
}

/* ---- messages ---- */

/* 1: there may be more; 0: none for now; -errno: the process is gone, or of no use. */
static int take_report(struct path_process *process)
{
        struct path_report report;
        ssize_t n = recv(process->channel, &report, sizeof(report), MSG_DONTWAIT);

        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        if (n != sizeof(report) || report.view.state >= _PATH_STATE_MAX)
                return n == 0 ? -EPIPE : -EBADMSG;
        process->silence = 0;
        if (report.type != PATH_REPORT_PONG)
                process->handlers->received(process->owner, &report);
        return 1;
}

/* The owner has wanted none meanwhile: then there is no channel. */
static int take_reports(struct path_process *process, unsigned most)
{
        int r = 1;

        for (unsigned i = 0; r > 0 && i < most && process->active; i++)
                r = take_report(process);
        return r;
}

static int on_channel(sd_event_source *source, int fd _unused_, uint32_t events, void *userdata)
{
        struct path_process *process = userdata;
        int r = take_reports(process, REPORTS_PER_TURN);

        if (r < 0) {
                lose(process, PATH_PROCESS_DIED);
                return 0;
        }
        if (!process->active || !(events & EPOLLOUT))
                return 0;
        (void)sd_event_source_set_io_events(source, EPOLLIN);
        process->handlers->has_room(process->owner);
        return 0;
}

int path_process_send(struct path_process *process, const struct path_order *order)
{
        if (!process->active)
                return -ENOTCONN;
        if (send(process->channel, order, path_order_size(order), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
                return 0;
        if (errno != EAGAIN && errno != ENOBUFS)
                return -errno;
        (void)sd_event_source_set_io_events(process->channel_source, EPOLLIN | EPOLLOUT);
        return -EAGAIN;
}

/* What it has sent meanwhile counts: this loop may be the one that was held up. */
static bool is_silent(struct path_process *process)
{
        return process->silence >= SILENCE_MAX && take_report(process) <= 0;
}

static int on_ping(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        static const struct path_order ping = {.type = PATH_ORDER_PING};
        struct path_process *process = userdata;

        if (is_silent(process)) {
                lose(process, PATH_PROCESS_SILENT);
                return 0;
        }
        if (!process->active)
                return 0;
        process->silence++;
        /* one that does not fit is one that is not answered */
        (void)send(process->channel, &ping, path_order_size(&ping), MSG_DONTWAIT | MSG_NOSIGNAL);
        set_timer(source, process->ping_usec);
        return 0;
}

/* ---- the start ---- */

static int on_death(sd_event_source *source _unused_, int fd, uint32_t events _unused_, void *userdata)
{
        struct place *place = userdata;
        struct path_process *process = place->process;
        uint64_t number = place->number;

        (void)waitid(P_PIDFD, (id_t)fd, &(siginfo_t){}, WEXITED | WNOHANG);
        if (place == process->active) {
                (void)take_reports(process, UINT32_MAX);
                if (place == process->active)
                        lose(process, PATH_PROCESS_DIED);
        }
        place_release(place);
        if (process->is_crowded && process->is_wanted)
                set_timer(process->start, 0);
        process->handlers->ended(process->owner, number);
        return 0;
}

static int spawn(const struct path_process *process, struct place *place, int theirs)
{
        return proc_spawn(
                &(struct proc_spawn){
                        .program = process->program,
                        .argv = (const char *[]){"ublkd", "--path-watcher", NULL},
                        .fds = {theirs},
                        .fd_count = 1,
                        .block_signals = true,
        },
                &place->pid, &place->pidfd);
}

static int add_source(struct path_process *process, int fd, sd_event_io_handler_t handler, void *userdata,
        sd_event_source **ret)
{
        int r = sd_event_add_io(process->event, ret, fd, EPOLLIN, handler, userdata);

        return r < 0 ? r : sd_event_source_set_priority(*ret, PRIORITY_LATE);
}

static int watch(struct path_process *process, struct place *place, int channel)
{
        int r = add_source(process, place->pidfd, on_death, place, &place->death);

        if (r >= 0)
                r = add_source(process, channel, on_channel, process, &process->channel_source);
        if (r < 0)
                (void)pidfd_send_signal(place->pidfd, SIGKILL, NULL, 0);
        return r;
}

/* Where it cannot be watched its place stays taken, unless its death can be seen. */
static int start(struct path_process *process, struct place *place)
{
        _cleanup_close_ int ours = -1, theirs = -1;
        int pair[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        ours = pair[0];
        theirs = pair[1];
        r = spawn(process, place, theirs);
        if (r < 0) {
                place_release(place);
                return r;
        }
        r = watch(process, place, ours);
        if (r < 0)
                return r;
        process->channel = TAKE_FD(ours);
        process->active = place;
        place->number = ++process->starts;
        process->silence = 0;
        set_timer(process->ping, process->ping_usec);
        return 0;
}

static int on_start(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        struct path_process *process = userdata;
        struct place *place = find_place(process);
        int r;

        if (process->active || !process->is_wanted)
                return 0;
        process->started_at = monotonic_now();
        process->is_crowded = !place;
        r = place ? start(process, place) : -EAGAIN;
        if (r >= 0) {
                process->handlers->started(process->owner, process->starts);
                return 0;
        }
        set_timer(source, DELAY_MAX_USEC);
        process->handlers->not_started(process->owner, r);
        return 0;
}

void path_process_want(struct path_process *process, bool wanted)
{
        if (process->is_wanted == wanted)
                return;
        process->is_wanted = wanted;
        if (wanted)
                set_timer(process->start, next_delay(process));
        else if (process->active)
                drop(process);
}

bool path_process_is_running(const struct path_process *process)
{
        return process->active;
}

/* ---- the whole ---- */

static int add_timer(struct path_process *process, sd_event_time_handler_t handler, sd_event_source **ret)
{
        int r = sd_event_add_time(process->event, ret, CLOCK_MONOTONIC, 0, ACCURACY_USEC, handler, process);

        if (r >= 0)
                r = sd_event_source_set_priority(*ret, PRIORITY_LATE);
        return r < 0 ? r : sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
}

int path_process_new(sd_event *event, const char *program, uint64_t ping_usec,
        const struct path_process_handlers *handlers, void *owner, struct path_process **ret)
{
        _cleanup_(path_process_free_pointer) struct path_process *process = calloc(1, sizeof(*process));
        int r;

        if (!process)
                return -ENOMEM;
        *process = (struct path_process){.event = sd_event_ref(event),
                .program = program,
                .ping_usec = ping_usec,
                .handlers = handlers,
                .owner = owner,
                .channel = -1};
        for (size_t i = 0; i < ARRAY_SIZE(process->places); i++)
                process->places[i] = (struct place){.process = process, .pidfd = -1};
        r = add_timer(process, on_ping, &process->ping);
        if (r >= 0)
                r = add_timer(process, on_start, &process->start);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(process);
        return 0;
}

/* One that was killed is left to init. */
struct path_process *path_process_free(struct path_process *process)
{
        if (!process)
                return NULL;
        if (process->active)
                drop(process);
        for (size_t i = 0; i < ARRAY_SIZE(process->places); i++)
                place_release(&process->places[i]);
        sd_event_source_disable_unref(process->ping);
        sd_event_source_disable_unref(process->start);
        sd_event_unref(process->event);
        free(process);
        return NULL;
}

pid_t path_process_pid(const struct path_process *process)
{
        return process->active ? process->active->pid : 0;
}

uint64_t path_process_starts(const struct path_process *process)
{
        return process->starts;
}
