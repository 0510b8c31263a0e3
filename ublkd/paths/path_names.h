/* SPDX-License-Identifier: MIT */
/* Which paths depend on a name in a place. A place is a directory (known by its inotify watch descriptor), or
 * PATH_PLACE_MOUNTS, whose names are mount points. Memory only; no I/O but through `leave`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

enum { PATH_PLACE_MOUNTS = -1 };

struct path_names;
struct path_link;

LIST_HEAD(path_links, path_link);

/* Embedded in what depends on names. Begins as {}. */
struct path_dependent {
        struct path_links links;
};

/* Called when nothing depends on the place any more. */
typedef void (*path_place_leave)(void *userdata, int place);
typedef void (*path_dependent_each)(void *userdata, struct path_dependent *dependent);

/* 0 or -ENOMEM. */
int path_names_new(path_place_leave leave, void *userdata, struct path_names **ret);
/* Every dependent was released before. NULL is fine. Returns NULL. */
struct path_names *path_names_free(struct path_names *names);

/* The dependent depends on that name. Linking it twice is fine. 0 or -ENOMEM (then the place may be left). */
int path_names_link(struct path_names *names, int place, const char *name, struct path_dependent *dependent);
/* Moves the links of a dependent to `ret` (overwritten), so that it can be linked to other names before those
 * are released: a place that it stays in is not left in between. */
void path_names_take(struct path_dependent *dependent, struct path_links *ret);
/* Frees the links: of a dependent, or taken from one. */
void path_names_release(struct path_names *names, struct path_links *links);

/* Calls `each` for all that depend on the name. It may not link or release. */
void path_names_each(const struct path_names *names, int place, const char *name, path_dependent_each each,
        void *userdata);
/* The same for all names of a place. */
void path_names_each_in(const struct path_names *names, int place, path_dependent_each each, void *userdata);
/* The place does not exist any more: `leave` is not called for it, and its number may be used again. */
void path_names_lose(struct path_names *names, int place);

/* How many names and places are held. */
size_t path_names_count(const struct path_names *names);
size_t path_names_places(const struct path_names *names);
