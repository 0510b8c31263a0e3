/* SPDX-License-Identifier: MIT */
/* The lines that a worker writes to its stdout and stderr.
 *
 * The supervisor trusts none of them. It reads a page at a time, ten times a second at most, after all other work of a
 * turn of the loop. It logs 20 lines at once, and one more every two seconds. The first line beyond that starts a pause
 * of ten seconds without any line. At the end of the pause the supervisor logs the number of dropped lines. */
#include "ublkd/workers/worker_log.h"

#include "ublkd/base/clock.h"
#include "ublkd/base/log.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
        PRIORITY_LOG = 20,
        READ_SIZE = 4096, /* bytes in a turn */
        READ_INTERVAL_USEC = 1000 * 1000,
        READ_BURST = 10,
        LAST_READS = 16,                      /* of a closed pipe: as much as a pipe holds */
        LINE_INTERVAL_USEC = 2 * 1000 * 1000, /* between lines, after a burst */
        PAUSE_USEC = 10 * 1000 * 1000,
};

struct worker_log {
        sd_event *event;
        sd_event_source *source, *pause; /* pause: lines are dropped until it is over */
        int fd;
        char *device; /* NULL: of a spare */
        pid_t pid;
        char line[WORKER_LOG_LINE_MAX + 1];
        size_t size; /* of the line so far, without what is cut off */
        uint64_t
                paid_until; /* CLOCK_MONOTONIC: by then the budget that logged lines have used is full again */
        uint64_t dropped;
};

DEFINE_CLEANUP(struct worker_log, worker_log_free);

/* ---- lines ---- */

/* Take the level of a line such as "<4>text" (sd-daemon(3)): at most LOG_ERR, also if the worker claims more. A line
 * without a level comes from a library. */
static int take_level(const char **text)
{
        const char *line = *text;

        if (line[0] != '<' || line[1] < '0' || line[1] > '7' || line[2] != '>')
                return LOG_WARNING;
        *text = line + 3;
        return line[1] - '0' > LOG_ERR ? line[1] - '0' : LOG_ERR;
}

static struct log_fields fields_of(const struct worker_log *log)
{
        return (struct log_fields){.device = log->device, .worker = log->pid};
}

static void report_dropped(struct worker_log *log)
{
        const struct log_fields fields = fields_of(log);

        if (log->dropped > 0)
                log_record(LOG_WARNING, &fields,
                        "worker %d: It wrote too much to its log; %llu lines are left out.", (int)log->pid,
                        (unsigned long long)log->dropped);
        log->dropped = 0;
}

static int on_pause_over(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct worker_log *log = userdata;

        log->pause = sd_event_source_disable_unref(log->pause);
        report_dropped(log);
        return 0;
}

static bool may_pass(struct worker_log *log)
{
        uint64_t now = clock_usec(CLOCK_MONOTONIC), from = log->paid_until > now ? log->paid_until : now;

        if (log->dropped > 0 || from - now > (uint64_t)LINE_INTERVAL_USEC * (WORKER_LOG_BURST - 1))
                return false;
        log->paid_until = from + LINE_INTERVAL_USEC;
        return true;
}

/* Without the timer the number is written when the worker is dead. */
static void drop(struct worker_log *log)
{
        if (log->dropped++ > 0 || log->pause)
                return;
        if (sd_event_add_time_relative(
                    log->event, &log->pause, CLOCK_MONOTONIC, PAUSE_USEC, 0, on_pause_over, log)
                >= 0)
                (void)sd_event_source_set_priority(log->pause, PRIORITY_LOG);
}

static void end_line(struct worker_log *log)
{
        const struct log_fields fields = fields_of(log);
        const char *text = log->line;
        int level;

        if (log->size == 0)
                return;
        log->line[log->size] = '\0';
        log->size = 0;
        level = take_level(&text);
        if (may_pass(log))
                log_record(level, &fields, "worker %d: %s", (int)log->pid, text);
        else
                drop(log);
}

static void take(struct worker_log *log, const char *bytes, size_t size)
{
        for (size_t i = 0; i < size; i++)
                if (bytes[i] == '\n')
                        end_line(log);
                else if (log->size < WORKER_LOG_LINE_MAX)
                        log->line[log->size++] = bytes[i] ? bytes[i] : '?';
}

/* ---- the pipe ---- */

/* Return whether the pipe may have more bytes. */
static bool read_some(struct worker_log *log)
{
        char bytes[READ_SIZE];
        ssize_t n = read(log->fd, bytes, sizeof(bytes));

        if (n > 0)
                take(log, bytes, (size_t)n);
        return n > 0;
}

static int on_output(sd_event_source *source, int fd _unused_, uint32_t events, void *userdata)
{
        struct worker_log *log = userdata;

        if (!read_some(log) && (events & (EPOLLHUP | EPOLLERR))) { /* no process can write to it any more */
                end_line(log);
                (void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
        }
        return 0;
}

static int watch(struct worker_log *log)
{
        int r = sd_event_add_io(log->event, &log->source, log->fd, EPOLLIN, on_output, log);

        if (r >= 0)
                r = sd_event_source_set_priority(log->source, PRIORITY_LOG);
        if (r >= 0)
                r = sd_event_source_set_ratelimit(log->source, READ_INTERVAL_USEC, READ_BURST);
        return r;
}

/* ---- what others call ---- */

int worker_log_new(sd_event *event, struct worker_log **ret, int *ret_fd)
{
        _cleanup_(worker_log_free_pointer) struct worker_log *log = calloc(1, sizeof(*log));
        _cleanup_close_ int theirs = -1;
        int ends[2], r;

        if (!log)
                return -ENOMEM;
        *log = (struct worker_log){.event = sd_event_ref(event), .fd = -1};
        if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
                return -errno;
        log->fd = ends[0];
        theirs = ends[1];
        r = watch(log);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(log);
        *ret_fd = TAKE_FD(theirs);
        return 0;
}

struct worker_log *worker_log_free(struct worker_log *log)
{
        if (!log)
                return NULL;
        for (unsigned i = 0; i < LAST_READS && read_some(log); i++)
                continue;
        end_line(log);
        report_dropped(log);
        sd_event_source_disable_unref(log->source);
        sd_event_source_disable_unref(log->pause);
        close_fd(log->fd);
        sd_event_unref(log->event);
        free(log->device);
        free(log);
        return NULL;
}

void worker_log_set_pid(struct worker_log *log, pid_t pid)
{
        if (log)
                log->pid = pid;
}

void worker_log_set_device(struct worker_log *log, const char *device)
{
        if (!log)
                return;
        free(log->device);
        log->device = strdup(device);
}
