/* SPDX-License-Identifier: MIT */
/* The namespaces that a search for mounts has met, as trees by their numbers. */
#include "ublkd/nodes/met_namespaces.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/namespace.h"

#include <linux/nsfs.h>
#include <search.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#ifndef NS_GET_MNTNS_ID
#define NS_GET_MNTNS_ID _IOR(NSIO, 0x5, uint64_t)
#endif
#ifndef NS_GET_ID
#define NS_GET_ID _IOR(NSIO, 13, uint64_t)
#endif

/* A user namespace. */
struct met_users {
        uint64_t number;
        bool is_owned; /* by this user of the host */
        uid_t owner;
};

/* Return 1: no other namespace gets the number; 0: it is the inode; -errno. */
static int find_number(int namespace, uint64_t *ret)
{
        struct stat st;

        if (ioctl(namespace, NS_GET_ID, ret) >= 0 || ioctl(namespace, NS_GET_MNTNS_ID, ret) >= 0)
                return 1;
        if (fstat(namespace, &st) < 0)
                return -errno;
        *ret = st.st_ino;
        return 0;
}

/* Both kinds of nodes begin with the number. */
static int compare(const void *left, const void *right)
{
        const uint64_t *a = left, *b = right;

        return *a < *b ? -1 : *a > *b;
}

/* Return 1: the item is in the tree, which owns it; 0: one with its number was there; -ENOMEM. */
static int add(void **tree, void *item)
{
        void **node = tsearch(item, tree, compare);

        return !node ? -ENOMEM : *node == item;
}

int met_namespaces_add(struct met_namespaces *met, int mounts)
{
        _cleanup_free_ uint64_t *item = NULL;
        uint64_t number;
        int r = find_number(mounts, &number);

        if (r < 0)
                return r;
        if (tfind(&number, &met->mounts, compare))
                return 0;
        item = malloc(sizeof(*item));
        if (!item)
                return -ENOMEM;
        *item = number;
        r = add(&met->mounts, item);
        if (r > 0)
                (void)TAKE_PTR(item);
        return r;
}

/* Return 1; 0: it has no owner here; -errno. */
static int ask(struct met_namespaces *met, int users, uint64_t number, uid_t *ret)
{
        _cleanup_free_ struct met_users *item = malloc(sizeof(*item));
        uid_t owner = 0;
        int r = item ? namespace_find_owner(users, &owner) : -ENOMEM, added;

        if (r < 0)
                return r;
        *item = (struct met_users){.number = number, .is_owned = r > 0, .owner = owner};
        added = add(&met->users, item);
        if (added < 0)
                return added;
        if (added > 0)
                (void)TAKE_PTR(item);
        if (r > 0)
                *ret = owner;
        return r;
}

int met_namespaces_find_owner(struct met_namespaces *met, int users, uid_t *ret)
{
        const struct met_users *known;
        uint64_t number;
        int r = find_number(users, &number);
        void *node;

        if (r <= 0)
                return r < 0 ? r : namespace_find_owner(users, ret);
        node = tfind(&number, &met->users, compare);
        if (!node)
                return ask(met, users, number, ret);
        known = *(struct met_users **)node;
        if (known->is_owned)
                *ret = known->owner;
        return known->is_owned;
}

void met_namespaces_clear(struct met_namespaces *met)
{
        tdestroy(met->mounts, free);
        tdestroy(met->users, free);
        *met = (struct met_namespaces){};
}
