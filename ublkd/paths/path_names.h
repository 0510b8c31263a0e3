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

/* Create an empty index. Return 0 or -ENOMEM. */
int path_names_new(path_place_leave leave, void *userdata, struct path_names **ret);
/* Free the index, after every dependent was released. NULL is fine. Return NULL. */
struct path_names *path_names_free(struct path_names *names);

/* Note that the dependent depends on that name. Linking it twice is fine. Return 0; on -ENOMEM the place may
 * be left. */
int path_names_link(struct path_names *names, int place, const char *name, struct path_dependent *dependent);
/* Move the links of a dependent to `ret` (overwritten), so that it can be linked to other names before those
 * are released: a place that it stays in is not left in between. */
void path_names_take(struct path_dependent *dependent, struct path_links *ret);
/* Free the links: of a dependent, or taken from one. */
void path_names_release(struct path_names *names, struct path_links *links);

/* Call `each` for all that depend on the name. It may not link or release. */
void path_names_each(const struct path_names *names, int place, const char *name, path_dependent_each each,
        void *userdata);
/* Call `each` for all that depend on any name of a place, as path_names_each() does. */
void path_names_each_in(const struct path_names *names, int place, path_dependent_each each, void *userdata);
/* Note that the place does not exist any more: `leave` is not called for it, and its number may be used
 * again. */
void path_names_lose(struct path_names *names, int place);

/* Return how many names are held; path_names_places(): how many places. */
size_t path_names_count(const struct path_names *names);
size_t path_names_places(const struct path_names *names);
