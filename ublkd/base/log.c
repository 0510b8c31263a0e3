/* SPDX-License-Identifier: MIT */
/* One logging layer.
 *
 * The journal's own protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL) is a datagram of NAME=value lines. It is
 * spoken here because the library for it would be one more in each program. */
#include "ublkd/base/log.h"

#include "ublkd/base/printable.h"

#include <endian.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

enum { LINE_MAX_BYTES = 2048, RECORD_MAX_BYTES = 8 * 1024, UNIT_SIZE = 128, HEAD_SIZE = 64 };

static int log_max_level = LOG_INFO;
static int log_journal = -1; /* a connected socket */
static bool log_is_relayed;
static bool log_closed;
static atomic_uint log_lost; /* lines, since the last one that was written */

void log_set_level(int level)
{
        log_max_level = level;
}

/* systemd.exec(5), $JOURNAL_STREAM: device and inode of what stderr is when it is the journal. */
static bool is_journal_stream(void)
{
        const char *text = getenv("JOURNAL_STREAM");
        unsigned long long device, inode;
        struct stat info;

        return text && sscanf(text, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &info) >= 0
               && info.st_dev == device && info.st_ino == inode;
}

void log_open(void)
{
        const char *path = getenv("UBLKD_JOURNAL_SOCKET"); /* for tests */
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd;

        if (!path)
                path = "/run/systemd/journal/socket";
        if (log_journal >= 0 || !is_journal_stream() || strlen(path) >= sizeof(address.sun_path))
                return;
        strcpy(address.sun_path, path);
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
                fd = close_fd(fd);
        log_journal = fd;
}

int log_open_relay(int fd)
{
        struct stat info;

        if (fstat(fd, &info) < 0)
                return -errno;
        if (!S_ISFIFO(info.st_mode))
                return -ENOTTY;
        if (dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
                return -errno;
        close_fd(fd);
        log_is_relayed = true;
        return 0;
}

/* stdin is /dev/null, for reading only: what is written to it fails. */
int log_leave_outputs(void)
{
        if (log_is_relayed)
                return 0;
        if (dup2(STDIN_FILENO, STDOUT_FILENO) < 0 || dup2(STDIN_FILENO, STDERR_FILENO) < 0)
                return -errno;
        return 0;
}

int log_close_shared(void)
{
        if (!log_is_relayed) {
                log_journal = close_fd(log_journal);
                log_closed = true;
        }
        return log_leave_outputs();
}

struct record {
        char text[RECORD_MAX_BYTES];
        size_t size;
};

/* A value with a line break (a reason comes from a worker) is written with its length instead, so that it
 * makes no field of its own. What has no room is left out. */
static void add_field(struct record *record, const char *name, const char *value)
{
        size_t name_size = strlen(name), size = strlen(value);
        uint64_t length = htole64(size);
        char *at = record->text + record->size;

        if (record->size + name_size + sizeof(length) + size + 2 > sizeof(record->text))
                return;
        at = mempcpy(at, name, name_size);
        if (strchr(value, '\n')) {
                *at++ = '\n';
                at = mempcpy(at, &length, sizeof(length));
        } else {
                *at++ = '=';
        }
        at = mempcpy(at, value, size);
        *at++ = '\n';
        record->size = (size_t)(at - record->text);
}

static void add_number(struct record *record, const char *name, int value)
{
        char text[16];

        snprintf(text, sizeof(text), "%d", value);
        add_field(record, name, text);
}

/* With the second field, systemctl status and journalctl -u show the line of ublkd with the unit of the disk. */
static void add_device(struct record *record, const char *name)
{
        char unit[UNIT_SIZE];

        add_field(record, "DEVICE", name);
        if (snprintf(unit, sizeof(unit), "ublk-disk@%s.service", name) < (int)sizeof(unit))
                add_field(record, "OBJECT_SYSTEMD_UNIT", unit);
}

static bool write_journal(int level, const struct log_fields *fields, const char *line)
{
        struct record record = {};

        if (log_journal < 0)
                return false;
        add_number(&record, "PRIORITY", level);
        add_field(&record, "SYSLOG_IDENTIFIER", program_invocation_short_name);
        if (fields->device)
                add_device(&record, fields->device);
        if (fields->worker > 0)
                add_number(&record, "WORKER", (int)fields->worker);
        if (fields->reason)
                add_field(&record, "REASON", fields->reason);
        if (fields->error < 0)
                add_number(&record, "ERRNO", -fields->error);
        for (const struct log_field *field = fields->more; field && field->name; field++)
                if (*field->value)
                        add_field(&record, field->name, field->value);
        add_field(&record, "MESSAGE", line);
        return send(log_journal, record.text, record.size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

/* The program that reads the stream may have stopped (the journal, if its disk hangs): ublkd must not wait for it. */
static bool takes_a_line(void)
{
        struct pollfd stream = {.fd = STDERR_FILENO, .events = POLLOUT};

        return poll(&stream, 1, 0) == 1;
}

/* The journal notes both itself. In the words of LogLevel=. */
static void format_head(int level, char head[static HEAD_SIZE])
{
        static const char *const names[] = {
                [LOG_ERR] = "error", [LOG_WARNING] = "warning", [LOG_INFO] = "info", [LOG_DEBUG] = "debug"};
        bool known = level >= 0 && (size_t)level < ARRAY_SIZE(names) && names[level];
        struct timespec now = {};
        char seconds[32] = "";
        struct tm tm;

        (void)clock_gettime(CLOCK_REALTIME, &now);
        if (gmtime_r(&now.tv_sec, &tm))
                strftime(seconds, sizeof(seconds), "%FT%T", &tm);
        snprintf(head, HEAD_SIZE, "%s.%03uZ %s: ", seconds, (unsigned)(now.tv_nsec / 1000000),
                known ? names[level] : "info");
}

/* One write: several processes share the stream, and of a relay's pipe it takes all of a line or nothing. */
static void write_whole_line(int level, const char *text)
{
        char line[LINE_MAX_BYTES + HEAD_SIZE], head[HEAD_SIZE];
        int size;

        if (log_is_relayed || is_journal_stream())
                snprintf(head, sizeof(head), "<%d>", level);
        else
                format_head(level, head);
        size = snprintf(line, sizeof(line), "%s%s\n", head, text);

        if (size > 0 && (size_t)size < sizeof(line))
                (void)!write(STDERR_FILENO, line, (size_t)size);
}

/* What the stream does not take is lost, and the next line that it takes says how many were. */
static void write_line(int level, const char *text)
{
        char words[96];
        unsigned lost;

        if (!takes_a_line()) {
                atomic_fetch_add(&log_lost, 1);
                return;
        }
        lost = atomic_exchange(&log_lost, 0);
        if (lost > 0) {
                snprintf(
                        words, sizeof(words), "%u lines of the log were lost, because nothing read it", lost);
                write_whole_line(LOG_WARNING, words);
        }
        write_whole_line(level, text);
}

void log_record(int level, const struct log_fields *fields, const char *format, ...)
{
        char line[LINE_MAX_BYTES];
        int used = 0;
        va_list arguments;

        if (log_closed || level > log_max_level)
                return;
        if (fields->device && !log_is_relayed)
                used = snprintf(line, sizeof(line), "%s: ", fields->device);
        if (used < 0 || (size_t)used >= sizeof(line))
                used = 0;
        va_start(arguments, format);
        (void)vsnprintf(line + used, sizeof(line) - (size_t)used, format, arguments);
        va_end(arguments);
        make_printable(line); /* names of processes and messages of workers are in it */
        if (!write_journal(level, fields, line))
                write_line(level, line);
}
