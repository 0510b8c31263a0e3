/* SPDX-License-Identifier: MIT */
/* Descriptors of backing stores that the service manager keeps while ublkd does not run (systemd's FDSTORE=,
 * sd_pid_notify_with_fds(3)). Without a service manager, the supervisor asks the living worker instead. On
 * the supervisor's loop; nothing suspends. In every function `store` may be NULL: there is no service
 * manager. */
#pragma once

#include <stdint.h>

struct fd_store;

/* Take over what the service manager has passed to this process. Return 0 or -errno. */
int fd_store_new(struct fd_store **ret);
/* Close what was not taken; the service manager keeps its own copies. Return NULL. */
struct fd_store *fd_store_free(struct fd_store *store);

/* Return how many listening sockets the service manager has passed, from SD_LISTEN_FDS_START on. */
unsigned fd_store_sockets(const struct fd_store *store);

/* Return the kept descriptor of the device's disk, which the caller closes; -1: none. *ret_epoch: of that
 * disk; it is lower than the record's if the record has changed since. */
int fd_store_take(struct fd_store *store, const char *uid, uint16_t *ret_epoch);
/* The same for one of the stores of a disk that has several; fd_store_take() is for number 0, which comes first: it knows the
 * epoch. */
int fd_store_take_listed(struct fd_store *store, const char *uid, uint16_t epoch, unsigned number);
/* Ask the service manager to keep a copy of `fd` for the disk, instead of an earlier one. number: of the store, among those of the
 * disk. */
void fd_store_keep(struct fd_store *store, const char *uid, uint16_t epoch, unsigned number, int fd);
/* Ask the service manager to close the copy. */
void fd_store_drop(struct fd_store *store, const char *uid, uint16_t epoch, unsigned number);

/* Return the kept exclusive open of a block device, which this device has inherited from another device, and
 * which the caller closes; -1: none. The device has it beside its own descriptor of the block device, in
 * every epoch. The next two functions keep it and close it likewise. */
int fd_store_take_claim(struct fd_store *store, const char *uid, unsigned number);
void fd_store_keep_claim(struct fd_store *store, const char *uid, unsigned number, int fd);
void fd_store_drop_claim(struct fd_store *store, const char *uid, unsigned number);
