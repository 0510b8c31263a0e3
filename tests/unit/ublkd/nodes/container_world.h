/* SPDX-License-Identifier: MIT */
/* Real containers, a private node of a loop disk, and its delivery. Only the tree of /sys is made up. Needs root. */
#pragma once

#include "ublkd/nodes/node_delivery.h"
#include "ublkd/nodes/private_node.h"

enum { TENANT = 1000, ANOTHER = 1001 };

extern const char node_uid[];
extern struct private_nodes *nodes;
extern sd_event *event;

/* Make the directories and the node, and enter a mount namespace for them. Return whether the machine can; a failure is
 * noted. */
bool world_open(void);
void world_close(void);
/* Make the node, or open it again. */
bool give_node(void);

/* ---- containers ---- */

struct container {
        pid_t pid;
        int pidfd, question, answer;
};

/* What a container does first: return 0 or -1. The names follow what it has of its own. */
int enter_rootless(void);
/* As it, of the user ANOTHER. */
int enter_rootless_of_another(void);
/* As it, of the user `rootless_user`. */
int enter_rootless_of_any(void);
extern uid_t rootless_user;
/* As a rootless container that has made itself another root directory, without its mount namespace. */
int enter_rootless_chroot(void);
int enter_mounts(void);
int enter_shared_mounts(void);
/* As a sandbox in a container without a user namespace: its user namespace has no right over the mounts. */
int enter_users_of_others_mounts(void);
int enter_nothing(void);
/* With a file system whose server never answers. */
int enter_silent(void);

struct container container_start(int (*enter)(void));
/* Return 0 or the errno of an open() in the container. */
int container_open(const struct container *container, const char *path);
/* Have a second process of a rootless container, as its root, do something that returns -1 on failure. Return its errno or 0. */
int run_inside(const struct container *container, int (*work)(const char *path), const char *path);
/* Open a directory of a file system in the container, which is in use until the descriptor is closed. Return it or -1. */
int open_inside(const struct container *container, const char *path);
void container_end(struct container *container);
/* Have root of a rootless container cover the directory, and mount a file system over a file in it, whose server answers no
 * question but the first. Return the server, a child. */
pid_t container_cover(const struct container *container, const char *directory, const char *path);
/* Write the path of a file in the directory that each container has for nodes. */
void path_there(const char *name, char ret[static 128]);

/* ---- deliveries ---- */

/* With more patience than a busy machine needs. */
struct node_deliveries *deliveries_new(void);
/* The same, for a delivery that is to be late. */
struct node_deliveries *deliveries_new_with(uint64_t patience_usec);
int begin_delivery(struct node_deliveries *deliveries, const struct container *container, uid_t user,
        const char *path, struct delivery_report *report, struct node_delivery **ret);
bool wait_for_report(const struct delivery_report *report);
struct delivery_report deliver_as(const struct container *container, uid_t user, const char *path);
struct delivery_report deliver(const struct container *container, const char *name);
void check_report_is(struct delivery_report report, enum delivery_outcome outcome, int error);
