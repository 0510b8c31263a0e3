/* SPDX-License-Identifier: MIT */
/* Descriptors that the service manager keeps while ublkd does not run.
 *
 * The name of a descriptor has the uid and the epoch of its disk: a disk that was recreated has another one.
 * It is not a failure if the service manager keeps none, because the next ublkd first asks the living
 * worker. */
#include "ublkd/runtime/fd_store.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/offload/close_away.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

enum { NAME_SIZE = 96 };

#define NAME_PREFIX "store-"

struct kept_fd {
        char name[NAME_SIZE];
        int fd;
};

struct fd_store {
        unsigned sockets;
        size_t count;
        struct kept_fd items[];
};

/* An older ublkd takes every name with another prefix for a socket, and leaves alone a name with the number of a store. */
static void finish_name(unsigned number, char name[static NAME_SIZE])
{
        size_t length = strlen(name);

        if (number > 0)
                snprintf(name + length, NAME_SIZE - length, ".%u", number);
}

static void name_of(const char *uid, uint16_t epoch, unsigned number, char ret[static NAME_SIZE])
{
        snprintf(ret, NAME_SIZE, NAME_PREFIX "%s-%u", uid, epoch);
        finish_name(number, ret);
}

static void name_of_claim(const char *uid, unsigned number, char ret[static NAME_SIZE])
{
        snprintf(ret, NAME_SIZE, NAME_PREFIX "claim-%s", uid);
        finish_name(number, ret);
}

static void free_names(char ***names)
{
        for (size_t i = 0; *names && (*names)[i]; i++)
                free((*names)[i]);
        free(*names);
}

static bool is_ours(const char *name)
{
        return strncmp(name, NAME_PREFIX, strlen(NAME_PREFIX)) == 0 && strlen(name) < NAME_SIZE;
}

static int compare_names(const void *one, const void *other)
{
        const struct kept_fd *left = one, *right = other;

        return strcmp(left->name, right->name);
}

int fd_store_new(struct fd_store **ret)
{
        _cleanup_(free_names) char **names = NULL;
        int count = sd_listen_fds_with_names(1, &names);
        struct fd_store *store;

        if (count < 0)
                return count;
        store = calloc(1, sizeof(*store) + (size_t)count * sizeof(store->items[0]));
        if (!store)
                return -ENOMEM;
        for (int i = 0; i < count; i++) {
                struct kept_fd *item = &store->items[store->count];

                if (!is_ours(names[i])) {
                        store->sockets++; /* systemd passes sockets first */
                        continue;
                }
                strcpy(item->name, names[i]);
                item->fd = SD_LISTEN_FDS_START + i;
                store->count++;
        }
        qsort(store->items, store->count, sizeof(store->items[0]), compare_names);
        *ret = store;
        return 0;
}

struct fd_store *fd_store_free(struct fd_store *store)
{
        for (size_t i = 0; store && i < store->count; i++)
                close_away(store->items[i].fd);
        free(store);
        return NULL;
}

unsigned fd_store_sockets(const struct fd_store *store)
{
        return store ? store->sockets : 0;
}

/* Return the index of the first descriptor whose name does not sort before `name`. */
static size_t find_from(const struct fd_store *store, const char *name)
{
        size_t low = 0, high = store->count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (strcmp(store->items[middle].name, name) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static struct kept_fd *find_name(struct fd_store *store, const char *name)
{
        for (size_t i = find_from(store, name); i < store->count; i++) {
                if (strcmp(store->items[i].name, name) != 0)
                        break;
                if (store->items[i].fd >= 0)
                        return &store->items[i];
        }
        return NULL;
}

/* Return the descriptor of the device's newest disk, or NULL. Descriptors of one device are neighbours. */
static struct kept_fd *find_newest(struct fd_store *store, const char *uid, uint16_t *ret_epoch)
{
        struct kept_fd *newest = NULL;
        char name[NAME_SIZE], prefix[NAME_SIZE];

        snprintf(prefix, sizeof(prefix), NAME_PREFIX "%s-", uid);
        for (size_t i = find_from(store, prefix); i < store->count; i++) {
                struct kept_fd *item = &store->items[i];
                uint16_t epoch;

                if (strncmp(item->name, prefix, strlen(prefix)) != 0)
                        break;
                epoch = (uint16_t)strtoul(item->name + strlen(prefix), NULL, 10);
                name_of(uid, epoch, 0, name);
                if (item->fd < 0 || strcmp(item->name, name) != 0 || (newest && epoch < *ret_epoch))
                        continue;
                newest = item;
                *ret_epoch = epoch;
        }
        return newest;
}

static void drop_named(struct fd_store *store, const char *name)
{
        struct kept_fd *kept = find_name(store, name);
        char text[NAME_SIZE + 64];

        if (kept)
                kept->fd = close_away(kept->fd);
        snprintf(text, sizeof(text), "FDSTOREREMOVE=1\nFDNAME=%s", name);
        (void)sd_notify(false, text);
}

static void keep_named(struct fd_store *store, const char *name, int fd)
{
        char text[NAME_SIZE + 64];

        /* With two descriptors of one name, the next ublkd could take the older one. */
        drop_named(store, name);
        /* FDPOLL=0: the service manager would drop a file that cannot be polled. */
        snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s\nFDPOLL=0", name);
        (void)sd_pid_notify_with_fds(0, false, text, &fd, 1);
}

int fd_store_take(struct fd_store *store, const char *uid, uint16_t *ret_epoch)
{
        uint16_t epoch = 0;
        struct kept_fd *newest = store ? find_newest(store, uid, &epoch) : NULL;

        if (!newest)
                return -1;
        *ret_epoch = epoch;
        return TAKE_FD(newest->fd);
}

int fd_store_take_listed(struct fd_store *store, const char *uid, uint16_t epoch, unsigned number)
{
        struct kept_fd *kept;
        char name[NAME_SIZE];

        name_of(uid, epoch, number, name);
        kept = store ? find_name(store, name) : NULL;
        return kept ? TAKE_FD(kept->fd) : -1;
}

void fd_store_drop(struct fd_store *store, const char *uid, uint16_t epoch, unsigned number)
{
        char name[NAME_SIZE];

        name_of(uid, epoch, number, name);
        if (store)
                drop_named(store, name);
}

void fd_store_keep(struct fd_store *store, const char *uid, uint16_t epoch, unsigned number, int fd)
{
        char name[NAME_SIZE];

        name_of(uid, epoch, number, name);
        if (store)
                keep_named(store, name, fd);
}

int fd_store_take_claim(struct fd_store *store, const char *uid, unsigned number)
{
        struct kept_fd *kept;
        char name[NAME_SIZE];

        name_of_claim(uid, number, name);
        kept = store ? find_name(store, name) : NULL;
        return kept ? TAKE_FD(kept->fd) : -1;
}

void fd_store_drop_claim(struct fd_store *store, const char *uid, unsigned number)
{
        char name[NAME_SIZE];

        name_of_claim(uid, number, name);
        if (store)
                drop_named(store, name);
}

void fd_store_keep_claim(struct fd_store *store, const char *uid, unsigned number, int fd)
{
        char name[NAME_SIZE];

        name_of_claim(uid, number, name);
        if (store)
                keep_named(store, name, fd);
}
