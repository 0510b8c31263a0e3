/* SPDX-License-Identifier: MIT */
/* To which users a mounted file system was delivered. The search for its copies looks at the containers of these users alone: no
 * other user can hold it up, or make it long. The list is the directory MOUNT.users beside the mount, with an empty file for each
 * user, and one more, "end", with which it is whole: a death may leave a part of it. Without one that is whole, any user may have a
 * copy. It outlives ublkd, as the mount does, and ends with the boot. All of these may take as long as the file system around it
 * does. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Initialise with zeros; mount_users_clear() frees what it owns. */
struct mount_users {
        uid_t *items;
        size_t count;
};

/* Begin an empty list. The disk is mounted nowhere, and the mount at the path `mount` follows. If it cannot be made, there is none that
 * is whole. */
void mount_users_begin(const char *mount);
/* Add a user, if there is a list. Return 0, also if the user is in it; -errno: a delivery must not follow. */
int mount_users_add(const char *mount, uid_t user);
/* Read the list. Return 1; 0: there is none, or it cannot be read, or it is not whole; -ENOMEM. */
int mount_users_read(const char *mount, struct mount_users *ret);
/* Remove the list: the mount has ended. */
void mount_users_end(const char *mount);

/* Remove each list in a directory of mounts whose mount has no directory there any more: a death has left it. */
void mount_users_clean(const char *top);

bool mount_users_has(const struct mount_users *users, uid_t user);
void mount_users_clear(struct mount_users *users);
