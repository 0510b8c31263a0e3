/* SPDX-License-Identifier: MIT */
/* The mounts that this process sees, and which of them have changed since the last look. */
#pragma once

struct mount_list;

/* Open a list. file: what to read, like "/proc/self/mountinfo". The first mount_list_changes() reports none.
 * Return 0 or -errno. */
int mount_list_open(const char *file, struct mount_list **ret);
/* Close the list and free it. NULL is fine. Return NULL. */
struct mount_list *mount_list_close(struct mount_list *list);
/* Return a descriptor to poll for POLLPRI: something has changed. */
int mount_list_fd(const struct mount_list *list);

/* Read the list again, and call `each` for the mount point, an absolute path, of each mount that came or
 * went. Return 0; or -errno: it could not be read, and the next call reports what has changed meanwhile. */
int mount_list_changes(
        struct mount_list *list, void (*each)(void *userdata, const char *point), void *userdata);
