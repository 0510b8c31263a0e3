/* SPDX-License-Identifier: MIT */
/* ublkd-worker: serves the I/O of one device.
 *
 * The main thread only talks: it takes the configuration, opens the backend, starts the threads that serve (steps.c),
 * and then answers supervisors as they come and go (messages.c). Nothing that happens to them touches the I/O. */
#include "targets/worker/queue/queue_threads.h"
#include "targets/worker/worker.h"
#include "ublkd/base/log.h"
#include "ublkd/base/ram.h"
#include "ublkd/base/version.h"

#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

static enum exit_status turn(struct worker *worker)
{
        enum { CONNECTION, LISTENER, QUEUES, _COUNT };
        struct pollfd fds[_COUNT] = {
                [CONNECTION] = {.fd = worker->chan.connection,                                  .events = POLLIN},
                [LISTENER] = {.fd = worker->chan.listener,                                    .events = POLLIN},
                [QUEUES] = {.fd = worker->threads ? queue_threads_fd(worker->threads) : -1, .events = POLLIN},
        };
        enum exit_status status = STAY;

        /* The supervisor exited before HELLO: no CONFIG will come. */
        if (worker->chan.connection < 0 && worker->stage < WORKER_STAGE_FETCHING)
                return EXIT_LEFT;
        if (poll(fds, ARRAY_SIZE(fds), worker_time_left(worker)) < 0 && errno != EINTR) {
                log_error(worker->name, "poll() failed: %s; leaving.", strerror(errno));
                return EXIT_FAILED;
        }
        if (fds[QUEUES].revents)
                status = worker_look_at_queues(worker);
        if (status == STAY && fds[CONNECTION].revents)
                status = worker_read_messages(worker);
        if (status == STAY && fds[LISTENER].revents)
                status = worker_take_call(worker);
        return status == STAY ? worker_go_on(worker) : status;
}

/* A worker ends when the kernel takes its queues, or by SIGKILL. What a terminal or a service manager sends
 * to a whole group, and what a write beyond a limit raises, must not end it by accident. */
static void ignore_signals(void)
{
        static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ, SIGTSTP, SIGTTIN,
                SIGTTOU, SIGALRM, SIGUSR1, SIGUSR2};

        for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
                (void)signal(signals[i], SIG_IGN);
}

static enum exit_status run(struct worker *worker)
{
        enum exit_status status = STAY;
        int r;

        r = chan_open(&worker->chan);
        if (r < 0) {
                log_error(worker->name,
                        "Cannot begin: %s; ublkd starts this program, with a socket as descriptor %d.",
                        strerror(-r), WORKER_CHANNEL_FD);
                return EXIT_USAGE;
        }
        walls_begin(&worker->walls);
        (void)ram_keep_mapped(); /* of a spare: its disk may have swap on it. ublkd logs why it fails. */
        if (!worker->name && !walls_hold(&worker->walls))
                return EXIT_FAILED; /* the next worker tries again, and reports it */
        if (!worker->name)
                worker_rehearse();
        report_all(worker);
        while (status == STAY) {
                enum worker_stage before = worker->stage;

                status = turn(worker);
                if (worker->stage == WORKER_STAGE_SERVING && before != WORKER_STAGE_SERVING)
                        ram_drop_stack(); /* a start needs more of it than anything later */
        }
        return status;
}

static const char usage_text[] = "Usage: ublkd-worker NAME [" WORKER_BEST_EFFORT "]\n"
                                 "Serve one device of ublkd(8), which starts it; it is of no use by itself.\n"
                                 "\n"
                                 "  -h, --help, --version\n";

/* Return whether there was a request for a text alone, and print that. */
static bool print_text(int argc, char **argv)
{
        if (argc == 2 && strcmp(argv[1], "--version") == 0)
                printf("ublkd-worker %s\n", ublkd_version);
        else if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
                fputs(usage_text, stdout);
        else
                return false;
        return true;
}

/* Begin with what ps(1) shows of this process: the name of its device, or that of a spare. */
static void take_name(struct worker *worker, char *shown)
{
        worker->shown = shown;
        worker->shown_room = strlen(shown);
        if (strncmp(worker->shown, WORKER_SPARE_NAME, strlen(WORKER_SPARE_NAME)) != 0)
                worker->name = worker->shown;
        else
                worker_show_name(worker, WORKER_SPARE_NAME); /* ps(1) omits NULs at the end, and no spaces */
}

int main(int argc, char **argv)
{
        struct worker worker = {
                .chan = {.connection = -1, .listener = -1},
                .number = -1,
                .disk = {.device.store = {.given = -1, .kept = -1}},
                .walls = {.network = -1, .files = -1},
                .node_folder = -1,
                .node = -1,
        };
        enum exit_status status;

        if (print_text(argc, argv))
                return EXIT_LEFT;
        worker.walls.best_effort = argc == 3 && strcmp(argv[2], WORKER_BEST_EFFORT) == 0;
        if (argc != 2 + worker.walls.best_effort || argv[1][0] == '-') {
                fputs(usage_text, stderr);
                return EXIT_USAGE;
        }
        (void)prctl(PR_SET_NAME, "ublkd-worker", 0, 0, 0);
        (void)mallopt(M_ARENA_MAX, 1); /* threads allocate only as they start: no heap for each */
        ignore_signals();
        (void)log_open_relay(WORKER_LOG_FD); /* started by an older ublkd: its stderr, until READY */
        take_name(&worker, argv[1]);
        status = run(&worker);
        /* Threads may still be serving what is about to be torn down: without a word to them. */
        if (status != EXIT_LEFT)
                _exit(status == AWAY ? EXIT_LEFT : status);
        disk_close(&worker.disk);
        worker_config_clear(&worker.config);
        chan_close(&worker.chan);
        close_fd(worker.node_folder);
        return status;
}
