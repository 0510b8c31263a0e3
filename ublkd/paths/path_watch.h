/* SPDX-License-Identifier: MIT */
/* Where paths lead, as events. A process of its own looks at them (ublkd/paths), and the loop goes on
 * meanwhile.
 *
 * A look can hang for ever. A watcher process that does not answer for a bounded time is killed and replaced,
 * and the path that it looked at is left alone for a while, together with those whose files lie in the same
 * file system; the others are watched by the next process. Processes that were killed and do not end are
 * bounded in number; with as many of them nothing is known of any path until one of them ends. */
#pragma once

#include "ublkd/paths/path_wire.h"

#include <stdint.h>
#include <systemd/sd-event.h>

struct path_watches;
struct path_watch;

/* All 0: what the program itself uses. Its strings outlive the watches. */
struct path_watches_options {
        const char *program; /* NULL: this very program */
        uint64_t ping_usec;  /* how often the process has to answer; it has as long for it. 0: 10 s */
        uint64_t pause_usec; /* how long a path that hung is left alone at first; 0: 60 s */
};

/* Create an empty set of watches. Return 0 or -errno. */
int path_watches_new(sd_event *event, const struct path_watches_options *options, struct path_watches **ret);
/* Kill the process, and free the set. Free every watch before. NULL is fine. Return NULL. */
struct path_watches *path_watches_free(struct path_watches *watches);

/* The view of a path is another one than before. Called from the loop, not by path_watch_new(). It may not
 * add or free watches. */
typedef void (*path_watch_changed)(void *userdata, const struct path_view *view);

/* Watch where `path` (absolute, shorter than PATH_MAX) leads, compared with `store`. Return 0 and a watch,
 * which the caller frees; -EINVAL: no such path; -ENOSPC: too many; other -errno. */
int path_watch_new(struct path_watches *watches, const char *path, const struct path_store *store,
        path_watch_changed changed, void *userdata, struct path_watch **ret);
/* Free a watch. NULL is fine. Return NULL. */
struct path_watch *path_watch_free(struct path_watch *watch);
/* Return what is known now; NULL: there was no look yet. Valid until the next one. */
const struct path_view *path_watch_view(const struct path_watch *watch);
/* Return the path as given; path_watch_store(): the store. */
const char *path_watch_path(const struct path_watch *watch);
const struct path_store *path_watch_store(const struct path_watch *watch);

/* Return the pid of the process that watches now, or 0; path_watches_starts(): how many were started so far.
 */
pid_t path_watches_pid(const struct path_watches *watches);
uint64_t path_watches_starts(const struct path_watches *watches);
