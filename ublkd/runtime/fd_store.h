/* SPDX-License-Identifier: MIT */
/* Descriptors that the service manager keeps for us while ublkd is away (systemd's FDSTORE=,
 * sd_pid_notify_with_fds(3)): those of the stores of disks. Without a service manager nothing is kept, and
 * the living worker is asked instead. On the supervisor's loop; nothing suspends. All functions take NULL for
 * the store: there is none. */
#pragma once

#include <stdint.h>

struct fd_store;

/* Takes over what the service manager has passed to this process. 0 or -errno. */
int fd_store_new(struct fd_store **ret);
/* Closes what was not asked for; the service manager keeps its own copies. Returns NULL. */
struct fd_store *fd_store_free(struct fd_store *store);

/* How many listening sockets were passed beside them, from SD_LISTEN_FDS_START on. */
unsigned fd_store_sockets(const struct fd_store *store);

/* The descriptor that was kept for the disk of the device, the caller's from now on; -1: none. *ret_epoch: of
 * that disk, which is older than the record where that was changed since. */
int fd_store_take(struct fd_store *store, const char *uid, uint16_t *ret_epoch);
/* Has a copy of `fd` kept for the disk, in place of the one that was kept before. */
void fd_store_keep(struct fd_store *store, const char *uid, uint16_t epoch, int fd);
/* Has the copy closed. */
void fd_store_forget(struct fd_store *store, const char *uid, uint16_t epoch);

/* The same of an exclusive open of a block device that another device has left to this one, beside the
 * device's own descriptor of that block device. It is the device's whatever its epoch. */
int fd_store_take_claim(struct fd_store *store, const char *uid);
void fd_store_keep_claim(struct fd_store *store, const char *uid, int fd);
void fd_store_forget_claim(struct fd_store *store, const char *uid);
