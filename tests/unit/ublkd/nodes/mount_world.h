/* SPDX-License-Identifier: MIT */
/* A tmpfs that is mounted as the file system of a disk is, and comes into real containers. Needs root, and Linux 6.3 for a tmpfs with
 * the ids of a container. */
#pragma once

#include "tests/unit/ublkd/nodes/container_world.h"

#include <sys/types.h>

extern char top[];    /* the directory of all mounts */
extern char base[];   /* where the file system is mounted */
extern char number[]; /* the file with its device number */
extern dev_t disk;

/* Make the directories and mount it, in the world of containers, which is open. Return whether this kernel gives it the ids of a
 * container. */
bool mount_world_open(void);
/* Mount it again. */
bool mount_world_mount(void);
void mount_world_close(void);

/* ---- in a container: return 0 or -1 ---- */

/* Whether the file of root there is root's. */
int see_owner(const char *path);
int unmount(const char *path);

/* ---- deliveries ---- */

/* A request for the container of the user TENANT. */
struct delivery_request request_of(const struct container *container, const char *path);
struct delivery_report deliver_request(struct delivery_request *request);
struct delivery_report deliver_mount(const struct container *container, const char *path);
