/* SPDX-License-Identifier: MIT */
/* The process behind path_watch: started when it is wanted, asked for signs of life, given up and replaced.
 * For path_watch only. */
#pragma once

#include "ublkd/paths/path_wire.h"

#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

enum path_process_loss {
        PATH_PROCESS_DIED,
        PATH_PROCESS_SILENT, /* it did not answer, and was killed */
};

/* Called from the loop. `number` names a process: 1, 2, …. None may free the path_process. */
struct path_process_handlers {
        void (*started)(void *owner, uint64_t number);
        void (*received)(void *owner, const struct path_report *report);
        void (*has_room)(void *owner); /* for what path_process_send() had no room for */
        void (*lost)(void *owner, uint64_t number, enum path_process_loss loss);
        void (*ended)(void *owner, uint64_t number); /* after it was lost: it is seen dead */
        void (*not_started)(void *owner, int error); /* -errno: no process can be started now */
};

struct path_process;

/* Create a path_process, without a process. program: NULL: this very one. ping_usec: how often a process has
 * to answer; it has as long for it. The strings and handlers outlive it. Return 0 or -errno. */
int path_process_new(sd_event *event, const char *program, uint64_t ping_usec,
        const struct path_process_handlers *handlers, void *owner, struct path_process **ret);
/* Kill the process without a call, and free the rest. NULL is fine. Return NULL. */
struct path_process *path_process_free(struct path_process *process);

/* Start a process soon, and replace it when it is lost; or kill it, and no `lost` follows. */
void path_process_want(struct path_process *process, bool wanted);
bool path_process_is_running(const struct path_process *process);
/* Send an order. Return 0; -EAGAIN: no room now, `has_room` follows; other -errno: there is no process, or it
 * is about to be lost. */
int path_process_send(struct path_process *process, const struct path_order *order);

/* Return the pid of the process that runs, or 0; path_process_starts(): how many were started so far. */
pid_t path_process_pid(const struct path_process *process);
uint64_t path_process_starts(const struct path_process *process);
