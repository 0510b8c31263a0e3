/* SPDX-License-Identifier: MIT */
/* One logging layer: records with fields when stderr is connected to the journal, else lines on stderr.
 * Only main, reconciler, http_server and worker/main log failures; everything else returns them. */
#pragma once

#include "ublkd/base/cleanup.h"

#include <sys/types.h>
#include <syslog.h>

/* Set the level above which nothing is written: LOG_ERR, LOG_WARNING, LOG_INFO (the default) or LOG_DEBUG. */
void log_set_level(int level);

/* Connect to the journal if stderr is; before that, and when it fails, lines go to stderr. */
void log_open(void);

/* Make a pipe stdout and stderr, and close fd. The process at its other end adds the device to each line, and keeps its
 * level. A line that the pipe does not take at once is lost. Return 0; -EBADF, -ENOTTY: fd is not a pipe; other
 * -errno. */
int log_open_relay(int fd);

/* Unless the log is relayed: write nothing any more, from whatever part of the program, to stdout and stderr. Return 0
 * or -errno. */
int log_close_shared(void);
/* The same for stdout and stderr in the table of descriptors of the calling thread, which does not log. Changes nothing
 * else, so each thread may call it. Return 0 or -errno. */
int log_leave_outputs(void);

/* One more field of a record in the journal. */
struct log_field {
        const char *name;  /* capital letters and '_'; NULL: the end */
        const char *value; /* "": left out */
};

/* What a record is about, beside its text. In the journal: DEVICE, WORKER, REASON and ERRNO. */
struct log_fields {
        const char *device;           /* the device's name; NULL: ublkd itself */
        pid_t worker;                 /* 0: none */
        const char *reason;           /* CamelCase, as in events; NULL: none */
        int error;                    /* 0 or -errno */
        const struct log_field *more; /* NULL: no more */
};
/* Write a record. Its text becomes one line: control characters, and what is not UTF-8, are written as '?'.
 */
void log_record(int level, const struct log_fields *fields, const char *format, ...) _printf_(3, 4);

/* device: the device's name, or NULL for a line about ublkd itself. */
#define log_line(level, name, ...)                                                                           \
        log_record(level, &(const struct log_fields){.device = (name)}, __VA_ARGS__)

/* With the -errno that it is about. */
#define log_errno(level, name, failure, ...)                                                                 \
        log_record(level, &(const struct log_fields){.device = (name), .error = (failure)}, __VA_ARGS__)

#define log_error(device, ...) log_line(LOG_ERR, device, __VA_ARGS__)
#define log_warning(device, ...) log_line(LOG_WARNING, device, __VA_ARGS__)
#define log_info(device, ...) log_line(LOG_INFO, device, __VA_ARGS__)
#define log_debug(device, ...) log_line(LOG_DEBUG, device, __VA_ARGS__)
