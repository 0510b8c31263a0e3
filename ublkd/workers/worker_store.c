/* SPDX-License-Identifier: MIT */
/* The stores that a worker has opened, or has refused to serve. */
#include "ublkd/workers/worker_store.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/offload/close_away.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static struct worker_store read_single(const struct worker_msg *msg, int fd)
{
        struct worker_store store = {
                .identity = {.basis = (enum backing_basis)msg->backing.basis,
                             .is_disk = msg->backing.is_disk},
                .major = msg->backing.major,
                .minor = msg->backing.minor,
                .inode = msg->backing.inode,
                .claimed = msg->backing.claimed,
                .fd = fd,
        };

        snprintf(store.identity.boot, sizeof(store.identity.boot), "%s", msg->backing.boot);
        snprintf(store.identity.lasting, sizeof(store.identity.lasting), "%s", msg->backing.lasting);
        return store;
}

static struct worker_store read_listed(const struct listed_store *listed, int fd)
{
        return (struct worker_store){
                .identity = listed->identity,
                .major = listed->major,
                .minor = listed->minor,
                .inode = listed->inode,
                .claimed = listed->claimed,
                .fd = fd,
        };
}

static unsigned count_fds(const int fds[static STORE_LIST_MAX])
{
        unsigned count = 0;

        while (count < STORE_LIST_MAX && fds[count] >= 0)
                count++;
        return count;
}

int worker_stores_read(
        const struct worker_msg *msg, int fds[static STORE_LIST_MAX], struct worker_stores *ret)
{
        const struct store_list *list = &msg->backing.stores;
        unsigned count = list->count > 0 ? list->count : 1, next = 0;
        struct worker_store *items;

        if (list->count > 0 ? count_fds(fds) != store_list_fds(list) : count_fds(fds) > 1)
                return -EBADMSG;
        items = calloc(count, sizeof(*items));
        if (!items)
                return -ENOMEM;
        if (list->count == 0)
                items[0] = read_single(msg, TAKE_FD(fds[0]));
        for (unsigned i = 0; i < list->count; i++) {
                int fd = -1;

                if (list->items[i].has_fd) {
                        fd = TAKE_FD(fds[next]);
                        next++;
                }
                items[i] = read_listed(&list->items[i], fd);
        }
        *ret = (struct worker_stores){.items = items, .count = count, .is_list = list->count > 0};
        return 0;
}

void worker_stores_clear(struct worker_stores *stores)
{
        for (unsigned i = 0; i < stores->count; i++)
                close_away(stores->items[i].fd);
        free(stores->items);
        *stores = (struct worker_stores){};
}

struct worker_msg worker_store_message(const struct worker_store *store)
{
        return (struct worker_msg){
                .type = WORKER_MSG_BACKING,
                .backing = {.boot = (char *)store->identity.boot, /* only read */
                        .lasting = (char *)store->identity.lasting,
                            .basis = (int)store->identity.basis,
                            .is_disk = store->identity.is_disk,
                            .major = store->major,
                            .minor = store->minor,
                            .inode = store->inode,
                            .claimed = store->claimed},
        };
}

struct listed_store worker_store_listed(const struct worker_store *store)
{
        return (struct listed_store){
                .identity = store->identity,
                .has_fd = store->fd >= 0,
                .claimed = store->claimed,
                .major = store->major,
                .minor = store->minor,
                .inode = store->inode,
        };
}
