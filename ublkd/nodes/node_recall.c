/* SPDX-License-Identifier: MIT */
/* Starts the process that unmounts nodes which were taken back, one at a time. */
#include "ublkd/nodes/node_recall.h"
#include "ublkd/nodes/private_node.h"
#include "ublkd/nodes/recall_process.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"
#include "ublkd/offload/proc_spawn.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

enum {
        PATIENCE_USEC = 20 * 1000 * 1000,
        PAUSE_USEC = 1000 * 1000,      /* between two looks */
        RETRY_USEC = 60 * 1000 * 1000, /* after one that has failed */
        REAP_USEC = 100 * 1000,
};

static_assert((int)RECALL_NODES_FD == (int)PROC_SPAWN_FIRST_FD, "the first descriptor of the process");

struct node_recall {
        sd_event *event;
        struct private_nodes *nodes;
        struct node_recall_options options;
        int process; /* its pidfd; -1: none runs */
        sd_event_source *death, *deadline;
        sd_event_source *next; /* the next look; NULL: none is planned */
        uint64_t not_before;   /* for the next look, CLOCK_MONOTONIC */
        bool wanted;           /* another look, since the last one began */
        int error;             /* -errno of the last look; 0: it worked */
};

static void begin(struct node_recall *recall);

static int on_next(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct node_recall *recall = userdata;

        recall->next = sd_event_source_disable_unref(recall->next);
        begin(recall);
        return 0;
}

/* Begin a look at `at`, or at the time that is planned if that is earlier. */
static void plan_look(struct node_recall *recall, uint64_t at)
{
        uint64_t planned;
        int r;

        if (recall->next && sd_event_source_get_time(recall->next, &planned) >= 0 && planned <= at)
                return;
        recall->next = sd_event_source_disable_unref(recall->next);
        r = sd_event_add_time(recall->event, &recall->next, CLOCK_MONOTONIC, at, 0, on_next, recall);
        if (r < 0 && recall->options.failed) /* until the next call of node_recall_ask() */
                recall->options.failed(recall->options.userdata, r);
}

/* A look has ended, or could not begin. */
static void note_end(struct node_recall *recall, int error)
{
        uint64_t now = monotonic_now();

        if (error < 0 && error != recall->error && recall->options.failed)
                recall->options.failed(recall->options.userdata, error);
        recall->error = error < 0 ? error : 0;
        recall->not_before = now + recall->options.pause_usec;
        if (recall->wanted)
                plan_look(recall, recall->not_before);
        else if (error < 0)
                plan_look(recall, now + recall->options.retry_usec);
        if (!recall->wanted && recall->options.ended)
                recall->options.ended(recall->options.userdata);
}

static int result_of(const siginfo_t *info)
{
        if (info->si_code != CLD_EXITED || info->si_status == RECALL_HINDERED)
                return -ETIMEDOUT;
        return info->si_status == 0 ? 0 : -EIO;
}

/* Return whether the process has ended. */
static bool reap(struct node_recall *recall, int error)
{
        siginfo_t info = {};
        int r = waitid(P_PIDFD, (id_t)recall->process, &info, WEXITED | WNOHANG) < 0 ? -errno : 0;

        if (r >= 0 && info.si_pid == 0)
                return false;
        recall->death = sd_event_source_disable_unref(recall->death);
        recall->deadline = sd_event_source_disable_unref(recall->deadline);
        close_fd(recall->process);
        recall->process = -1;
        note_end(recall, error < 0 ? error : r < 0 ? r : result_of(&info));
        return true;
}

static int on_death(
        sd_event_source *source _unused_, int fd _unused_, uint32_t events _unused_, void *userdata)
{
        (void)reap(userdata, 0);
        return 0;
}

/* Without `death` nothing else sees its end. */
static int on_deadline(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        struct node_recall *recall = userdata;

        (void)pidfd_send_signal(recall->process, SIGKILL, NULL, 0);
        if (recall->death || reap(recall, -ENOMEM))
                return 0;
        (void)sd_event_source_set_time_relative(source, REAP_USEC);
        (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        return 0;
}

static int spawn(struct node_recall *recall)
{
        static const char *const arguments[] = {"ublkd", NODE_RECALL_OPTION, NULL};
        pid_t pid;

        return proc_spawn(
                &(const struct proc_spawn){
                        .program = recall->options.program,
                        .argv = arguments,
                        .fds = {private_nodes_directory(recall->nodes)},
                        .fd_count = 1,
                },
                &pid, &recall->process);
}

/* The deadline comes first: a process that nothing watches any more is killed and reaped by it. */
static int start(struct node_recall *recall)
{
        int r = sd_event_add_time_relative(recall->event, &recall->deadline, CLOCK_MONOTONIC,
                recall->options.patience_usec, 0, on_deadline, recall);

        if (r >= 0)
                r = spawn(recall);
        if (r < 0) {
                recall->deadline = sd_event_source_disable_unref(recall->deadline);
                return r;
        }
        r = sd_event_add_io(recall->event, &recall->death, recall->process, EPOLLIN, on_death, recall);
        if (r < 0)
                (void)sd_event_source_set_time_relative(recall->deadline, 0);
        return 0;
}

static void begin(struct node_recall *recall)
{
        int r;

        recall->wanted = false;
        recall->next = sd_event_source_disable_unref(recall->next);
        r = start(recall);
        if (r < 0)
                note_end(recall, r);
}

void node_recall_ask(struct node_recall *recall)
{
        if (recall->process >= 0)
                recall->wanted = true;
        else if (monotonic_now() >= recall->not_before)
                begin(recall);
        else
                plan_look(recall, recall->not_before);
}

int node_recall_new(sd_event *event, struct private_nodes *nodes, const struct node_recall_options *options,
        struct node_recall **ret)
{
        struct node_recall *recall = calloc(1, sizeof(*recall));

        if (!recall)
                return -ENOMEM;
        recall->event = sd_event_ref(event);
        recall->nodes = nodes;
        if (options)
                recall->options = *options;
        if (recall->options.patience_usec == 0)
                recall->options.patience_usec = PATIENCE_USEC;
        if (recall->options.pause_usec == 0)
                recall->options.pause_usec = PAUSE_USEC;
        if (recall->options.retry_usec == 0)
                recall->options.retry_usec = RETRY_USEC;
        recall->process = -1;
        *ret = recall;
        return 0;
}

struct node_recall *node_recall_free(struct node_recall *recall)
{
        if (!recall)
                return NULL;
        sd_event_source_disable_unref(recall->death);
        sd_event_source_disable_unref(recall->deadline);
        sd_event_source_disable_unref(recall->next);
        if (recall->process >= 0)
                (void)pidfd_send_signal(recall->process, SIGKILL, NULL, 0); /* init, or our end, reaps it */
        close_fd(recall->process);
        sd_event_unref(recall->event);
        free(recall);
        return NULL;
}
