/* SPDX-License-Identifier: MIT */
/* Starts the process that unmounts nodes which were taken back, one at a time. */
#include "ublkd/nodes/node_recall.h"
#include "ublkd/nodes/private_node.h"
#include "ublkd/nodes/recall_process.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/offload/proc_spawn.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

enum { PATIENCE_USEC = 20 * 1000 * 1000 };

static_assert((int)RECALL_NODES_FD == (int)PROC_SPAWN_FIRST_FD, "the first descriptor of the process");

struct node_recall {
        sd_event *event;
        struct private_nodes *nodes;
        struct node_recall_options options;
        int process; /* its pidfd; -1: none runs */
        sd_event_source *death, *deadline;
        bool again;      /* when the process has ended */
        bool has_failed; /* the last look */
};

static void note_end(struct node_recall *recall, int error)
{
        if (error < 0 && !recall->has_failed && recall->options.failed)
                recall->options.failed(recall->options.userdata, error);
        recall->has_failed = error < 0;
}

static void begin(struct node_recall *recall);

static int on_death(sd_event_source *source _unused_, int fd, uint32_t events _unused_, void *userdata)
{
        struct node_recall *recall = userdata;
        siginfo_t info = {};
        int r = waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG) < 0 ? -errno : 0;

        if (r >= 0 && info.si_code != CLD_EXITED)
                r = -ETIMEDOUT;
        else if (r >= 0 && info.si_status != 0)
                r = -EIO;
        recall->death = sd_event_source_disable_unref(recall->death);
        recall->deadline = sd_event_source_disable_unref(recall->deadline);
        close_fd(recall->process);
        recall->process = -1;
        note_end(recall, r);
        if (recall->again)
                begin(recall);
        else if (recall->options.ended)
                recall->options.ended(recall->options.userdata);
        return 0;
}

static int on_deadline(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        (void)pidfd_send_signal(((struct node_recall *)userdata)->process, SIGKILL, NULL, 0);
        return 0;
}

static int spawn(struct node_recall *recall)
{
        static const char *const arguments[] = {"ublkd", NODE_RECALL_OPTION, NULL};
        pid_t pid;

        return proc_spawn(
                &(const struct proc_spawn){
                        .program = "/proc/self/exe",
                        .argv = arguments,
                        .fds = {private_nodes_directory(recall->nodes)},
                        .fd_count = 1,
                },
                &pid, &recall->process);
}

static int start(struct node_recall *recall)
{
        int r = spawn(recall);

        if (r < 0)
                return r;
        r = sd_event_add_io(recall->event, &recall->death, recall->process, EPOLLIN, on_death, recall);
        if (r >= 0)
                r = sd_event_add_time_relative(recall->event, &recall->deadline, CLOCK_MONOTONIC,
                        recall->options.patience_usec, 0, on_deadline, recall);
        if (r >= 0)
                return 0;
        (void)pidfd_send_signal(recall->process, SIGKILL, NULL, 0);
        if (!recall->death) {
                (void)waitid(P_PIDFD, (id_t)recall->process, &(siginfo_t){}, WEXITED);
                close_fd(recall->process);
                recall->process = -1;
        }
        return r;
}

static void begin(struct node_recall *recall)
{
        int r;

        recall->again = false;
        r = start(recall);
        if (r < 0)
                note_end(recall, r);
}

void node_recall_ask(struct node_recall *recall)
{
        if (recall->process >= 0)
                recall->again = true;
        else
                begin(recall);
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
        if (recall->process >= 0)
                (void)pidfd_send_signal(recall->process, SIGKILL, NULL, 0); /* init, or our end, reaps it */
        close_fd(recall->process);
        sd_event_unref(recall->event);
        free(recall);
        return NULL;
}
