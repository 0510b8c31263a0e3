/* SPDX-License-Identifier: MIT */
/* Which paths depend on a name in a place: a hash table of names, and a sorted array of places. */
#include "ublkd/paths/path_names.h"

#include "ublkd/base/cleanup.h"

#include <stdint.h>
#include <string.h>

enum { BUCKETS_MIN = 64 };

struct place;

/* A name in a place. It is there as long as something depends on it. */
struct entry {
        struct place *place;
        LIST_ENTRY(entry) of_bucket, of_place;
        struct path_links links;
        uint64_t hash;
        char name[];
};

LIST_HEAD(entries, entry);

struct place {
        int number;
        bool lost;
        struct entries entries;
};

struct path_link {
        struct path_dependent *dependent;
        struct entry *entry;
        LIST_ENTRY(path_link) of_entry, of_dependent;
};

struct path_names {
        path_place_leave leave;
        void *userdata;
        struct entries *buckets;
        size_t bucket_count, count;
        struct place **places; /* ascending; those that are lost are not among them */
        size_t place_count, place_room;
};

DEFINE_CLEANUP(struct path_names, path_names_free);

/* ---- places ---- */

/* Where the place is, or would be. */
static size_t place_index(const struct path_names *names, int number)
{
        size_t from = 0, to = names->place_count;

        while (from < to) {
                size_t middle = from + (to - from) / 2;

                if (names->places[middle]->number < number)
                        from = middle + 1;
                else
                        to = middle;
        }
        return from;
}

static struct place *place_find(const struct path_names *names, int number)
{
        size_t at = place_index(names, number);

        return at < names->place_count && names->places[at]->number == number ? names->places[at] : NULL;
}

static int places_grow(struct path_names *names)
{
        size_t room = names->place_room ? 2 * names->place_room : BUCKETS_MIN;
        struct place **places;

        if (names->place_count < names->place_room)
                return 0;
        places = reallocarray(names->places, room, sizeof(struct place *));
        if (!places)
                return -ENOMEM;
        names->places = places;
        names->place_room = room;
        return 0;
}

static struct place *place_new(struct path_names *names, int number)
{
        struct place *place = places_grow(names) < 0 ? NULL : malloc(sizeof(*place));
        size_t at = place_index(names, number);

        if (!place)
                return NULL;
        *place = (struct place){.number = number};
        memmove(&names->places[at + 1], &names->places[at],
                (names->place_count - at) * sizeof(struct place *));
        names->places[at] = place;
        names->place_count++;
        return place;
}

static void place_unlist(struct path_names *names, const struct place *place)
{
        size_t at = place_index(names, place->number);

        names->place_count--;
        memmove(&names->places[at], &names->places[at + 1],
                (names->place_count - at) * sizeof(struct place *));
}

static void place_free_if_empty(struct path_names *names, struct place *place)
{
        if (!LIST_EMPTY(&place->entries))
                return;
        if (!place->lost) {
                place_unlist(names, place);
                names->leave(names->userdata, place->number);
        }
        free(place);
}

void path_names_lose(struct path_names *names, int place)
{
        struct place *lost = place_find(names, place);

        if (!lost)
                return;
        place_unlist(names, lost);
        lost->lost = true; /* until the last that depends on it is released */
}

/* ---- entries ---- */

/* FNV-1a. */
static uint64_t hash_of(const struct place *place, const char *name)
{
        uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)place->number;

        for (; *name; name++)
                hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
        return hash ^ hash >> 32;
}

static struct entries *bucket_of(const struct path_names *names, uint64_t hash)
{
        return &names->buckets[hash & (names->bucket_count - 1)];
}

static struct entry *entry_find(const struct path_names *names, const struct place *place, const char *name)
{
        uint64_t hash = hash_of(place, name);
        struct entry *entry;

        LIST_FOREACH (entry, bucket_of(names, hash), of_bucket)
                if (entry->hash == hash && entry->place == place && strcmp(entry->name, name) == 0)
                        return entry;
        return NULL;
}

/* On ENOMEM the chains get longer. */
static void buckets_grow(struct path_names *names)
{
        struct entries *old = names->buckets, *buckets;
        size_t old_count = names->bucket_count;
        struct entry *entry;

        if (names->count <= old_count)
                return;
        buckets = calloc(2 * old_count, sizeof(*buckets));
        if (!buckets)
                return;
        names->buckets = buckets;
        names->bucket_count = 2 * old_count;
        for (size_t i = 0; i < old_count; i++)
                while ((entry = LIST_FIRST(&old[i]))) {
                        LIST_REMOVE(entry, of_bucket);
                        LIST_INSERT_HEAD(bucket_of(names, entry->hash), entry, of_bucket);
                }
        free(old);
}

static struct entry *entry_new(struct path_names *names, struct place *place, const char *name)
{
        size_t size = strlen(name) + 1;
        struct entry *entry = malloc(sizeof(*entry) + size);

        if (!entry)
                return NULL;
        *entry = (struct entry){.place = place, .hash = hash_of(place, name)};
        memcpy(entry->name, name, size);
        LIST_INSERT_HEAD(bucket_of(names, entry->hash), entry, of_bucket);
        LIST_INSERT_HEAD(&place->entries, entry, of_place);
        names->count++;
        buckets_grow(names);
        return entry;
}

static void entry_free_if_unused(struct path_names *names, struct entry *entry)
{
        struct place *place = entry->place;

        if (!LIST_EMPTY(&entry->links))
                return;
        LIST_REMOVE(entry, of_bucket);
        LIST_REMOVE(entry, of_place);
        names->count--;
        free(entry);
        place_free_if_empty(names, place);
}

/* ---- links ---- */

int path_names_link(struct path_names *names, int place, const char *name, struct path_dependent *dependent)
{
        struct path_link *link = malloc(sizeof(*link));
        struct place *in = place_find(names, place);
        struct entry *entry;

        if (!in)
                in = place_new(names, place);
        entry = in ? entry_find(names, in, name) : NULL;
        if (in && !entry)
                entry = entry_new(names, in, name);
        if (!link || !entry) {
                free(link);
                if (entry)
                        entry_free_if_unused(names, entry);
                else if (in)
                        place_free_if_empty(names, in);
                return -ENOMEM;
        }
        *link = (struct path_link){.dependent = dependent, .entry = entry};
        LIST_INSERT_HEAD(&entry->links, link, of_entry);
        LIST_INSERT_HEAD(&dependent->links, link, of_dependent);
        return 0;
}

void path_names_take(struct path_dependent *dependent, struct path_links *ret)
{
        struct path_link *link;

        LIST_INIT(ret);
        while ((link = LIST_FIRST(&dependent->links))) {
                LIST_REMOVE(link, of_dependent);
                LIST_INSERT_HEAD(ret, link, of_dependent);
        }
}

void path_names_release(struct path_names *names, struct path_links *links)
{
        struct path_link *link;

        while ((link = LIST_FIRST(links))) {
                struct entry *entry = link->entry;

                LIST_REMOVE(link, of_entry);
                LIST_REMOVE(link, of_dependent);
                free(link);
                entry_free_if_unused(names, entry);
        }
}

static void each_of(const struct entry *entry, path_dependent_each each, void *userdata)
{
        const struct path_link *link;

        LIST_FOREACH (link, &entry->links, of_entry)
                each(userdata, link->dependent);
}

void path_names_each(
        const struct path_names *names, int place, const char *name, path_dependent_each each, void *userdata)
{
        const struct place *in = place_find(names, place);
        const struct entry *entry = in ? entry_find(names, in, name) : NULL;

        if (entry)
                each_of(entry, each, userdata);
}

void path_names_each_in(const struct path_names *names, int place, path_dependent_each each, void *userdata)
{
        const struct place *in = place_find(names, place);
        const struct entry *entry;

        if (!in)
                return;
        LIST_FOREACH (entry, &in->entries, of_place)
                each_of(entry, each, userdata);
}

size_t path_names_count(const struct path_names *names)
{
        return names->count;
}

size_t path_names_places(const struct path_names *names)
{
        return names->place_count;
}

int path_names_new(path_place_leave leave, void *userdata, struct path_names **ret)
{
        _cleanup_(path_names_free_pointer) struct path_names *names = calloc(1, sizeof(*names));

        if (!names)
                return -ENOMEM;
        *names = (struct path_names){.leave = leave, .userdata = userdata, .bucket_count = BUCKETS_MIN};
        names->buckets = calloc(BUCKETS_MIN, sizeof(*names->buckets));
        if (!names->buckets)
                return -ENOMEM;
        *ret = TAKE_PTR(names);
        return 0;
}

struct path_names *path_names_free(struct path_names *names)
{
        if (!names)
                return NULL;
        free(names->buckets);
        free(names->places);
        free(names);
        return NULL;
}
