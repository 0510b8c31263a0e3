/* SPDX-License-Identifier: MIT */
/* The mounts that this process sees, and which of them have changed since the last look. */
#pragma once

struct mount_list;

/* file: what to read, like "/proc/self/mountinfo". 0 or -errno. The first mount_list_changes() reports none.
 */
int mount_list_open(const char *file, struct mount_list **ret);
/* NULL is fine. Returns NULL. */
struct mount_list *mount_list_close(struct mount_list *list);
/* To be polled for POLLPRI: something has changed. */
int mount_list_fd(const struct mount_list *list);

/* Reads the list again, and calls `each` for the mount point, an absolute path, of each mount that came or
 * went. 0; or -errno: it could not be read, and the next call reports what has changed meanwhile. */
int mount_list_changes(
        struct mount_list *list, void (*each)(void *userdata, const char *point), void *userdata);
