/* SPDX-License-Identifier: MIT */
/* The namespaces that a search for mounts has met. A user may have very many processes in few namespaces, and each look at one takes
 * time of all others. */
#pragma once

#include <sys/types.h>

/* Initialise with zeros; met_namespaces_clear() frees what it owns. The kernel gives a namespace a number that no other one gets in this
 * boot (mount namespaces since Linux 6.11, user namespaces since 6.18). With an older one a mount namespace goes by its inode: a new one
 * that has got the inode of one that has ended counts as met, until the next search. */
struct met_namespaces {
        void *mounts, *users; /* trees */
};

/* Return 1: the mount namespace (a descriptor) is new; 0: the search has met it; -errno. */
int met_namespaces_add(struct met_namespaces *met, int mounts);
/* As namespace_find_owner(), which is asked once for each user namespace that has such a number: the inode of one that has ended may
 * be that of another user now. Also: -ENOMEM. */
int met_namespaces_find_owner(struct met_namespaces *met, int users, uid_t *ret);
void met_namespaces_clear(struct met_namespaces *met);
