/* SPDX-License-Identifier: MIT */
/* ublkd-follow: the process of the unit ublk-disk@NAME.service. It runs for as long as the disk is in service, by the
 * marks that ublkd keeps (ublkd/disk_marks.h), so that the state of the unit is the state of the disk:
 *
 *     ublkd-follow RUNTIME_DIR NAME COMMAND...
 *
 * It exits with 0 when the disk was taken down, and with 1, after the sentence of the device on standard error, when the
 * disk has failed. On SIGTERM it becomes COMMAND, which takes the disk down. It asks ublkd nothing: the socket would
 * start a manager that was stopped. */
#include "ublkd/base/cleanup.h"
#include "ublkd/base/file_io.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
        EXIT_USAGE = 2,
        LOOK_AGAIN_MS = 1000, /* while the directory of the marks is gone: ublkd makes it again */
        SENTENCE_MAX = 4096,
};

struct place {
        const char *name;
        const char *path;
};

/* Return a descriptor that is readable after a change of the marks, or -errno. */
static int watch_marks(const struct place *place)
{
        _cleanup_close_ int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        char live[4096];

        if (fd < 0)
                return -errno;
        snprintf(live, sizeof(live), "%s/live", place->path);
        if (inotify_add_watch(
                    fd, live, IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)
                < 0)
                return -errno;
        return TAKE_FD(fd);
}

static void mark_path(const struct place *place, const char *kind, char ret[static 4096])
{
        snprintf(ret, 4096, "%s/%s/%s", place->path, kind, place->name);
}

static bool is_live(const struct place *place)
{
        char path[4096];

        mark_path(place, "live", path);
        return access(path, F_OK) == 0;
}

/* Return whether ublkd keeps marks at all: without the directory nothing is known of the disk. */
static bool is_marked(const struct place *place)
{
        char path[4096];

        snprintf(path, sizeof(path), "%s/live", place->path);
        return access(path, F_OK) == 0;
}

/* Print why the disk is out of service. Return the exit status. */
static int report(const struct place *place)
{
        _cleanup_free_ char *sentence = NULL;
        char path[4096];

        mark_path(place, "failed", path);
        if (read_whole_at(AT_FDCWD, path, SENTENCE_MAX, &sentence) < 0)
                return EXIT_SUCCESS;
        fprintf(stderr, "%s: %s", place->name, sentence);
        return EXIT_FAILURE;
}

/* Wait for the signal, for a change of the marks (`marks`, or -1), or until it is time to look again. Return whether the
 * signal has come, or -errno. */
static int wait_for_change(int signals, int marks)
{
        struct signalfd_siginfo info; /* taken: else the command would get the signal */
        struct pollfd fds[] = {
                {.fd = signals, .events = POLLIN},
                {.fd = marks,   .events = POLLIN}
        };
        char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));

        if (poll(fds, ARRAY_SIZE(fds), marks < 0 ? LOOK_AGAIN_MS : -1) < 0)
                return errno == EINTR ? 0 : -errno;
        while (marks >= 0 && read(marks, events, sizeof(events)) > 0)
                ;
        return fds[0].revents != 0 && read(signals, &info, sizeof(info)) > 0;
}

/* Return the exit status when the disk is out of service; -EINTR on SIGTERM; other -errno. */
static int follow(const struct place *place, int signals)
{
        for (;;) {
                _cleanup_close_ int marks = watch_marks(place); /* the directory that is there now */
                int r;

                if (marks < 0 && marks != -ENOENT)
                        return marks;
                if (is_marked(place) && !is_live(place)) /* after the watch has begun: no change is missed */
                        return report(place);
                r = wait_for_change(signals, marks);
                if (r != 0)
                        return r < 0 ? r : -EINTR;
        }
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

int main(int argc, char *argv[])
{
        struct place place;
        sigset_t before;
        int signals, r;

        if (argc < 4) {
                fputs("usage: ublkd-follow RUNTIME_DIR NAME COMMAND...\n", stderr);
                return EXIT_USAGE;
        }
        place = (struct place){.path = argv[1], .name = argv[2]};
        signals = open_signals(&before);
        r = signals < 0 ? signals : follow(&place, signals);
        if (r >= 0)
                return r;
        if (r == -EINTR) {
                (void)sigprocmask(SIG_SETMASK, &before, NULL);
                (void)execvp(argv[3], argv + 3);
                r = -errno;
                fprintf(stderr,
                        "%s: the disk stays in service: %s cannot be run: %s; take the disk down with "
                        "'ublkctl stop %s'\n",
                        place.name, argv[3], strerror(-r), place.name);
                return EXIT_FAILURE;
        }
        fprintf(stderr, "%s: the state of the disk cannot be followed: %s; the disk is served nevertheless\n",
                place.name, strerror(-r));
        return EXIT_FAILURE;
}
