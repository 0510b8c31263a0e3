/* SPDX-License-Identifier: MIT */
/* ublkd-follow: the process of the unit ublk-disk@NAME.service. It runs for as long as the disk is in service, by the
 * marks that ublkd keeps (ublkd/tasks/disk_marks.h), so that the state of the unit is the state of the disk:
 *
 *     ublkd-follow RUNTIME_DIR NAME COMMAND...
 *     ublkd-follow --why RUNTIME_DIR NAME
 *
 * It exits with 0 when the disk was taken down. It exits with 1 when the disk has failed, and prints the sentence of
 * the device on standard error. On SIGTERM it becomes COMMAND, which takes the disk down. The status of the unit has
 * the worker of the disk (served_by.h). It does not ask ublkd: the socket would start a manager that was stopped. It
 * checks once a second: a user has few inotify instances (128 by default), and a machine may have many disks. With
 * --why it only reports: it exits as if the disk had gone out of service now. */
#include "ublkd/base/cleanup.h"
#include "ublkd/base/file_io.h"
#include "ublkd/base/printable.h"
#include "ublkd/runtime/runtime_names.h"
#include "units/follow/served_by.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
        EXIT_USAGE = 2,
        LOOK_AGAIN_MS = 1000,
        SENTENCE_SIZE = 4096,
};

struct place {
        const char *path; /* of the runtime directory */
        const char *name; /* of the device */
};

static void mark_path(const struct place *place, const char *kind, char ret[static PATH_MAX])
{
        snprintf(ret, PATH_MAX, "%s/%s/%s", place->path, kind, place->name);
}

/* Return whether the disk is in service. If the runtime directory is missing, assume no change: ublkd makes it
 * again. */
static bool is_live(const struct place *place)
{
        char mark[PATH_MAX], marks[PATH_MAX];

        mark_path(place, RUNTIME_LIVE_NAME, mark);
        snprintf(marks, sizeof(marks), "%s/" RUNTIME_LIVE_NAME, place->path);
        return access(mark, F_OK) == 0 || access(marks, F_OK) < 0;
}

/* Print why the disk is out of service. Return the exit status. */
static int report(const struct place *place)
{
        char path[PATH_MAX], sentence[SENTENCE_SIZE];
        ssize_t n;

        mark_path(place, RUNTIME_FAILED_NAME, path);
        n = read_line_at(AT_FDCWD, path, sentence, sizeof(sentence));
        if (n == -ENOENT)
                return EXIT_SUCCESS;
        make_printable(sentence);
        fprintf(stderr, "%s: %s\n", place->name,
                n < 0 ? "The disk is not in service; 'ublkctl describe' says why." : sentence);
        return EXIT_FAILURE;
}

/* Return the exit status when the disk is out of service; -EINTR on SIGTERM; other -errno. */
static int follow(const struct place *place, int signals, struct served_by *served)
{
        struct signalfd_siginfo info; /* taken: else the command would get the signal */
        char mark[PATH_MAX];

        mark_path(place, RUNTIME_LIVE_NAME, mark);
        while (is_live(place)) {
                struct pollfd fds[] = {
                        {.fd = signals, .events = POLLIN},
                        {.events = POLLIN}
                };

                served_by_look(served, mark);
                fds[1].fd = served->worker;
                if (poll(fds, ARRAY_SIZE(fds), LOOK_AGAIN_MS) < 0 && errno != EINTR)
                        return -errno;
                if (read(signals, &info, sizeof(info)) > 0)
                        return -EINTR;
        }
        return report(place);
}

static int open_signals(sigset_t *ret_before)
{
        sigset_t wanted;
        int fd;

        sigemptyset(&wanted);
        sigaddset(&wanted, SIGTERM);
        if (sigprocmask(SIG_BLOCK, &wanted, ret_before) < 0)
                return -errno;
        fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
        return fd < 0 ? -errno : fd;
}

/* Become the command that takes the disk down. Return only if that fails: the exit status. */
static int take_down(const struct place *place, char *command[], const sigset_t *signals)
{
        (void)sigprocmask(SIG_SETMASK, signals, NULL);
        (void)execvp(command[0], command);
        fprintf(stderr,
                "%s: the disk stays in service: %s cannot be run: %s; take the disk down with 'ublkctl stop "
                "%s'\n",
                place->name, command[0], strerror(errno), place->name);
        return EXIT_FAILURE;
}

int main(int argc, char *argv[])
{
        struct served_by served;
        struct place place;
        sigset_t before;
        int signals, r;

        if (argc < 4) {
                fputs("usage: ublkd-follow RUNTIME_DIR NAME COMMAND...\n"
                      "       ublkd-follow --why RUNTIME_DIR NAME\n",
                        stderr);
                return EXIT_USAGE;
        }
        if (strcmp(argv[1], "--why") == 0)
                return report(&(struct place){.path = argv[2], .name = argv[3]});
        place = (struct place){.path = argv[1], .name = argv[2]};
        signals = open_signals(&before);
        served_by_begin(&served);
        r = signals < 0 ? signals : follow(&place, signals, &served);
        if (r == -EINTR) {
                served_by_end(&served);
                return take_down(&place, argv + 3, &before);
        }
        if (r < 0)
                fprintf(stderr,
                        "%s: the state of the disk cannot be followed: %s; the disk is served nevertheless\n",
                        place.name, strerror(-r));
        return r < 0 ? EXIT_FAILURE : r;
}
