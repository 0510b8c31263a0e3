/* SPDX-License-Identifier: MIT */
/* Looks of node_recall at real containers, by the real process, which main() of the test has to be on NODE_RECALL_OPTION. */
#pragma once

#include "ublkd/nodes/node_recall.h"

#include "tests/unit/ublkd/nodes/container_world.h"

enum { LOOKS_MAX = 10 };

struct looks {
        int ended; /* how many, of those that no other follows at once */
        int failed;
        int error; /* of the last one that has failed otherwise than the one before */
};

struct node_recall *recall_new(struct looks *looks, uint64_t pause_usec);
void wait_for_looks(const struct looks *looks, int count);
/* Ask `asks` times at once, and wait until no process runs. Return the error. */
int recall_times(int asks, uint64_t pause_usec);
/* Look until nothing hinders: on a machine that has much to do, the containers of a user may need more time than a look gives
 * them. */
void recall_all(void);

/* As root of the host, in the mount namespace of the container; return 0 or the errno. */
int do_in(const struct container *container, int (*act)(const char *path), const char *path);
int act_unmount(const char *path);
int act_cover(const char *path);
int act_is_socket(const char *path);
/* What is left is the socket of the delivery. */
void check_is_unmounted(const struct container *container, const char *path);

/* Start a container of the tenant with the node, and write its path. */
struct container container_with_node(char path[static 128]);
