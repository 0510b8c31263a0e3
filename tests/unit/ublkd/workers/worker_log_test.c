/* SPDX-License-Identifier: MIT */
/* worker_log: what a worker writes becomes lines that no reader takes for another's. */
#include "ublkd/workers/worker_log.h"

#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

enum { PAGE = 4096, PIPE_SIZE = 16 * PAGE, SECOND = 1000 * 1000 };

struct test {
        sd_event *event;
        struct worker_log *log;
        int end;                /* of the worker */
        int stream, stream_end; /* what ublkd writes to its stderr */
        int saved;              /* the stderr of this program, for failures */
};

static void begin(struct test *test)
{
        int ends[2];

        CHECK_INT(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
        test->stream = ends[0];
        test->stream_end = ends[1];
        CHECK_INT(worker_log_new(test->event, &test->log, &test->end), 0);
        worker_log_set_pid(test->log, 47);
        worker_log_set_device(test->log, "data");
}

static bool run(struct test *test, uint64_t patience)
{
        int r;

        CHECK_INT(dup2(test->stream_end, STDERR_FILENO), STDERR_FILENO);
        r = sd_event_run(test->event, patience);
        CHECK_INT(dup2(test->saved, STDERR_FILENO), STDERR_FILENO);
        return r > 0;
}

static void end_log(struct test *test)
{
        CHECK_INT(dup2(test->stream_end, STDERR_FILENO), STDERR_FILENO);
        test->log = worker_log_free(test->log);
        CHECK_INT(dup2(test->saved, STDERR_FILENO), STDERR_FILENO);
}

static void end(struct test *test)
{
        end_log(test);
        close_fd(test->end);
        close(test->stream);
        close(test->stream_end);
}

static void put(const struct test *test, const char *text, size_t size)
{
        CHECK_INT(write(test->end, text, size), size);
}

#define PUT(test, text) put(test, text, sizeof(text) - 1)

/* Of each line: when it was written, and its level. */
static void drop_heads(char *text)
{
        char *to = text, *line = text, *end;

        for (; (end = strchr(line, '\n')); line = end + 1) {
                char *rest = strstr(line, "Z ");

                rest = rest && rest < end ? strstr(rest, ": ") : NULL;
                if (!CHECK(rest && rest < end))
                        break;
                rest += strlen(": ");
                memmove(to, rest, (size_t)(end + 1 - rest));
                to += end + 1 - rest;
        }
        *to = '\0';
}

/* Return what ublkd has written, without heads, and run the loop before. Free it. */
static char *read_stream(struct test *test)
{
        char *text = calloc(1, PIPE_SIZE + 1);
        ssize_t n;

        while (run(test, 0))
                continue;
        n = read(test->stream, text, PIPE_SIZE);
        text[n > 0 ? n : 0] = '\0';
        drop_heads(text);
        return text;
}

static void check_stream(struct test *test, const char *wanted)
{
        char *text = read_stream(test);

        CHECK_STR(text, wanted);
        free(text);
}

static unsigned count_lines(const char *text)
{
        unsigned lines = 0;

        for (; *text; text++)
                lines += *text == '\n';
        return lines;
}

static void test_each_line_names_its_worker(struct test *test)
{
        begin(test);
        PUT(test, "<4>It is late.\nfree(): invalid ");
        check_stream(test, "data: worker 47: It is late.\n");
        PUT(test, "pointer\n\n\n");
        check_stream(test, "data: worker 47: free(): invalid pointer\n");
        worker_log_set_device(test->log, "other");
        PUT(test, "<6>Served.\n<7>Not asked for.\n");
        check_stream(test, "other: worker 47: Served.\n");
        end(test);
}

static void test_forged_lines(struct test *test)
{
        begin(test);
        PUT(test, "a\rother: gone\n<3>ublkd: All is lost \x1b[2J\n<4>\xff\xc2\x9b\xe2\x80\xae"
                  "x\n");
        PUT(test, "before\0after\n");
        check_stream(test, "data: worker 47: a?other: gone\ndata: worker 47: ublkd: All is lost ?[2J\n"
                           "data: worker 47: ??????x\ndata: worker 47: before?after\n");
        end(test);
}

static void test_a_long_line_is_cut_off(struct test *test)
{
        char wanted[2 * WORKER_LOG_LINE_MAX] = "data: worker 47: ", line[WORKER_LOG_LINE_MAX + 100];
        size_t head = strlen(wanted);

        memset(line, 'x', sizeof(line));
        memset(wanted + head, 'x', WORKER_LOG_LINE_MAX);
        strcpy(wanted + head + WORKER_LOG_LINE_MAX, "\n");
        begin(test);
        put(test, line, sizeof(line));
        PUT(test, "\nshort\n");
        strcat(wanted, "data: worker 47: short\n");
        check_stream(test, wanted);
        end(test);
}

static void test_the_last_words_are_written(struct test *test)
{
        begin(test);
        PUT(test, "It is the end.\nwithout a line break");
        end_log(test);
        check_stream(test, "data: worker 47: It is the end.\ndata: worker 47: without a line break\n");
        end(test);
}

static void test_too_many_lines_are_counted(struct test *test)
{
        char *text;

        begin(test);
        for (unsigned i = 0; i < 100; i++)
                PUT(test, "again\n");
        text = read_stream(test);
        CHECK_INT(count_lines(text), WORKER_LOG_BURST);
        free(text);
        end_log(test);
        check_stream(test, "data: worker 47: It wrote too much to its log; 80 lines are left out.\n");
        end(test);
}

/* A flood costs a page for each of some turns in a second, and never fills memory. */
static void test_a_flood_is_read_slowly(struct test *test)
{
        static const char page[PAGE] = {[0 ... PAGE - 1] = '\n'};
        uint64_t until = clock_usec(CLOCK_MONOTONIC) + SECOND / 2;
        unsigned turns = 0;
        int left = 0;

        begin(test);
        while (clock_usec(CLOCK_MONOTONIC) < until) {
                while (write(test->end, page, sizeof(page)) > 0)
                        continue;
                CHECK_INT(errno, EAGAIN); /* the worker is not blocked */
                turns += run(test, SECOND / 100);
        }
        CHECK(turns > 0 && turns <= 2 * 10);
        CHECK_INT(ioctl(test->end, FIONREAD, &left), 0);
        CHECK(left <= PIPE_SIZE);
        end(test);
}

static void test_a_worker_outlives_its_reader(struct test *test)
{
        begin(test);
        end_log(test);
        CHECK_INT(write(test->end, "x\n", 2), -1);
        CHECK_INT(errno, EPIPE);
        end(test);
}

static void test_a_closed_pipe_costs_nothing(struct test *test)
{
        begin(test);
        PUT(test, "The end.");
        test->end = close_fd(test->end);
        check_stream(test, "data: worker 47: The end.\n");
        CHECK(!run(test, SECOND / 20));
        end(test);
}

int main(void)
{
        struct test test = {.saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)};

        signal(SIGPIPE, SIG_IGN);
        unsetenv("JOURNAL_STREAM");
        CHECK_INT(sd_event_new(&test.event), 0);
        test_each_line_names_its_worker(&test);
        test_forged_lines(&test);
        test_a_long_line_is_cut_off(&test);
        test_the_last_words_are_written(&test);
        test_too_many_lines_are_counted(&test);
        test_a_flood_is_read_slowly(&test);
        test_a_worker_outlives_its_reader(&test);
        test_a_closed_pipe_costs_nothing(&test);
        sd_event_unref(test.event);
        return check_report();
}
