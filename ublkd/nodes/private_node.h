/* SPDX-License-Identifier: MIT */
/* A block node for one tenant's disk, of which no other name has the inode: /dev/ublk/private/UID, where UID is that of
 * the device, which cannot be guessed.
 *
 * The node is on the devtmpfs of the host: every mount of it has the same inodes. So what is taken from the inode is
 * taken in every mount namespace, also from bind mounts that ublkd does not know. The kernel gives the number of a disk
 * to another disk later; so a node is shut before its disk goes.
 *
 * A node carries a seal (an extended attribute that only root of the host sees): the sequence number of its disk, which
 * the kernel gives to no other disk until the next boot, and the instance of ublkd. The seal shows after a restart
 * whether the node still leads to the disk that it was made for. No call blocks. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct private_nodes;

enum { PRIVATE_NODE_PATH_SIZE = 80 };

struct private_nodes_config {
        const char *dev;      /* "/dev", or another directory in tests */
        const char *sys;      /* "/sys", or another tree in tests */
        const char *instance; /* which ublkd: its runtime directory */
};

struct private_node {
        const char *uid; /* of the device, a UUID */
        int number;      /* N of /dev/ublkbN, which exists */
        uid_t owner;     /* not root */
};

/* Open DEV/ublk/private, and create it if it is missing. Return 0; -EPERM: a directory belongs to another user, or
 * others may write to it; -ELOOP: there is a symbolic link; other -errno. */
int private_nodes_open(const struct private_nodes_config *config, struct private_nodes **ret);
struct private_nodes *private_nodes_free(struct private_nodes *nodes);

/* Remove each node whose disk is gone, and each node of this instance that `keep` refuses. Call it before a disk is
 * created or removed. Return the number of removed nodes; -errno: some are left, which may lead to another disk. */
int private_nodes_sweep(struct private_nodes *nodes,
        bool (*keep)(void *userdata, const char *uid, uid_t owner), void *userdata);

/* Make the node, of the owner alone, or open a node again that was shut. A node of another disk is replaced. Return 1;
 * 0: it was so before; -EINVAL: root needs no private node; -errno. */
int private_node_give(struct private_nodes *nodes, const struct private_node *node);
/* Take all rights from the inode, but keep it. Return 0, also if there is none, or -errno. */
int private_node_shut(struct private_nodes *nodes, const char *uid);
/* Shut the node, and remove it. Return 0, also if there is none, or -errno. */
int private_node_remove(struct private_nodes *nodes, const char *uid);

/* Clone the node as a mount that is nowhere yet, without set-uid and execution. Return a descriptor; -ENOENT: there is no
 * node that is open; other -errno. */
int private_node_clone(struct private_nodes *nodes, const char *uid);

/* Return the descriptor of the directory of the nodes, which stays that of `nodes`. */
int private_nodes_directory(const struct private_nodes *nodes);

/* Write the path of the node, as clients see it. */
void private_node_path(const char *uid, char ret[static PRIVATE_NODE_PATH_SIZE]);
