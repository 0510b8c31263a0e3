/* SPDX-License-Identifier: MIT */
/* log: records with fields for the journal, lines for any other reader. */
#include "ublkd/base/log.h"

#include "tests/unit/check.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

static char journal_path[64];

static int open_journal(void)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        snprintf(journal_path, sizeof(journal_path), "/tmp/log_test.%d", (int)getpid());
        strcpy(address.sun_path, journal_path);
        CHECK_INT(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        CHECK_INT(setenv("UBLKD_JOURNAL_SOCKET", journal_path, 1), 0);
        return fd;
}

/* As systemd connects stderr: a descriptor, and its device and inode in the environment. */
static int open_stream(bool named)
{
        struct stat info;
        char text[64];
        int ends[2];

        CHECK_INT(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
        CHECK_INT(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
        CHECK_INT(fstat(STDERR_FILENO, &info), 0);
        snprintf(text, sizeof(text), "%llu:%llu", (unsigned long long)info.st_dev,
                (unsigned long long)info.st_ino + (named ? 0 : 1));
        CHECK_INT(setenv("JOURNAL_STREAM", text, 1), 0);
        return ends[0];
}

static void check_read(int fd, const char *wanted, size_t size)
{
        char got[4096];
        ssize_t n = read(fd, got, sizeof(got));

        if (!CHECK_INT(n, size) || !CHECK(memcmp(got, wanted, size) == 0))
                printf("got: %.*s\n", (int)(n > 0 ? n : 0), got);
}

/* Stderr that the journal does not read: nothing else notes when a line was written, and how serious it is. */
static void check_read_dated(int fd, const char *wanted)
{
        char got[4096] = "", head[64];
        struct timespec after = {};
        time_t seconds;
        struct tm tm = {};
        unsigned msec;
        int length = 0;
        ssize_t n = read(fd, got, sizeof(got) - 1);
        char *line = got, *end;

        (void)clock_gettime(CLOCK_REALTIME, &after); /* time() is up to a tick behind it */
        CHECK(n > 0);
        for (; (end = strchr(line, '\n')); line = end + 1) {
                if (!CHECK_INT(sscanf(line, "%4d-%2d-%2dT%2d:%2d:%2d.%3uZ %n", &tm.tm_year, &tm.tm_mon,
                                       &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &msec, &length),
                            7))
                        break;
                tm.tm_year -= 1900;
                tm.tm_mon--;
                seconds = timegm(&tm);
                CHECK(seconds <= after.tv_sec && seconds >= after.tv_sec - 60);
                CHECK_INT(length, snprintf(head, sizeof(head), "2026-01-02T03:04:05.678Z "));
                CHECK(strncmp(line + length, wanted, (size_t)(end + 1 - line - length)) == 0);
                wanted += end + 1 - line - length;
        }
        CHECK_STR(wanted, "");
        CHECK_STR(line, "");
}

#define CHECK_READ(fd, text) check_read(fd, text, sizeof(text) - 1)

/* A service must not stop because what reads its log has stopped. */
static void test_a_stream_that_nothing_reads(void)
{
        static char page[4096];
        int ends[2];
        ssize_t n;

        CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
        CHECK_INT(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
        CHECK_INT(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
        close(ends[1]);
        while (poll(&(struct pollfd){.fd = STDERR_FILENO, .events = POLLOUT}, 1, 0) == 1)
                CHECK_INT(write(STDERR_FILENO, page, sizeof(page)), sizeof(page));
        alarm(60); /* instead of waiting for ever */
        log_info(NULL, "First");
        log_info(NULL, "Second");
        alarm(0);
        do
                n = read(ends[0], page, sizeof(page));
        while (n > 0);
        log_info(NULL, "Third");
        check_read_dated(
                ends[0], "warning: 2 lines of the log were lost, because nothing read it\ninfo: Third\n");
        close(ends[0]);
}

/* As a worker: a pipe that never blocks it, whatever becomes of its reader. Last, since it is for good. */
static void test_relay(void)
{
        static const char page[4096];
        int ends[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);

        CHECK_INT(signal(SIGPIPE, SIG_IGN) == SIG_ERR, false);
        CHECK_INT(log_open_relay(null), -ENOTTY);
        CHECK_INT(log_open_relay(999), -EBADF);
        CHECK_INT(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
        CHECK_INT(log_open_relay(ends[1]), 0);
        CHECK_INT(fcntl(ends[1], F_GETFD), -1);
        log_warning("data", "It %s.", "happened");
        CHECK_READ(ends[0], "<4>It happened.\n");
        CHECK_INT(write(STDOUT_FILENO, "words", 5), 5);
        CHECK_READ(ends[0], "words");
        CHECK_INT(log_leave_outputs(), 0);
        CHECK_INT(log_close_shared(), 0);
        log_error("data", "Still there\n<3>not this");
        CHECK_READ(ends[0], "<3>Still there?<3>not this\n");
        while (write(STDERR_FILENO, page, sizeof(page)) > 0)
                continue;
        log_error(NULL, "There is no room");
        close(ends[0]);
        log_error(NULL, "There is no reader");
}

int main(void)
{
        int saved = dup(STDERR_FILENO), saved_output = dup(STDOUT_FILENO), journal = open_journal(),
            stream = open_stream(false);

        /* Stderr is something else than JOURNAL_STREAM says, as on a terminal of a user's session. */
        log_open();
        log_warning("data", "It %s.", "happened");
        check_read_dated(stream, "warning: data: It happened.\n");
        /* A worker's text cannot forge a line, nor the name of a process act on a terminal. */
        log_warning("data", "%s", "It failed\n<3>other: All is lost \x1b[2J\xc2\x9b");
        check_read_dated(stream, "warning: data: It failed?<3>other: All is lost ?[2J??\n");
        close(stream);

        stream = open_stream(true);
        log_open();
        log_record(LOG_WARNING,
                &(const struct log_fields){
                        .device = "data", .worker = 42, .reason = "WorkerDied", .error = -5},
                "It happened; %d more.", 2);
        CHECK_READ(journal, "PRIORITY=4\nSYSLOG_IDENTIFIER=log_test\nDEVICE=data\n"
                            "OBJECT_SYSTEMD_UNIT=ublk-disk@data.service\nWORKER=42\nREASON=WorkerDied\n"
                            "ERRNO=5\nMESSAGE=data: It happened; 2 more.\n");
        log_record(LOG_INFO,
                &(const struct log_fields){
                        .more = (const struct log_field[]){{"STATUS", "201"}, {"CLIENT_UID", ""},
                                                           {"REQUEST", "A\nB=C"}, {}}
        },
                "Asked for");
        CHECK_READ(journal,
                "PRIORITY=6\nSYSLOG_IDENTIFIER=log_test\nSTATUS=201\nREQUEST\n\x05\0\0\0\0\0\0\0A\nB=C\n"
                "MESSAGE=Asked for\n");
        log_record(LOG_INFO, &(const struct log_fields){.reason = "A\nB=C"}, "Two\nlines");
        CHECK_READ(journal, "PRIORITY=6\nSYSLOG_IDENTIFIER=log_test\nREASON\n\x05\0\0\0\0\0\0\0A\nB=C\n"
                            "MESSAGE=Two?lines\n");
        log_debug(NULL, "Not asked for");
        CHECK_INT(read(journal, (char[1]){0}, 1), -1);

        close(journal); /* the journal went away: nothing is lost */
        log_info(NULL, "Still there");
        CHECK_READ(stream, "<6>Still there\n");
        CHECK_INT(unlink(journal_path), 0);
        test_a_stream_that_nothing_reads();
        test_relay();
        CHECK_INT(dup2(saved, STDERR_FILENO), STDERR_FILENO);
        CHECK_INT(dup2(saved_output, STDOUT_FILENO), STDOUT_FILENO);
        return check_report();
}
