/* SPDX-License-Identifier: MIT */
/* The claims of a disk on its backing store, kept in the runtime directory. The next ublkd must know them
 * before a worker can report them: a disk that waits for its recovery has no worker. A reboot removes them
 * with the disk. */
#pragma once

#include "ublkd/backing/backing_claims.h"
#include "ublkd/runtime/runtime_dir.h"

/* Replace the file. Return 0 or -errno. */
int claim_file_write(struct runtime_dir *dir, const char *uid, const struct backing_claims *claims);
/* Read the file. Return 0 and claims that the caller clears; -ENOENT; -EBADMSG: the file has other contents;
 * other -errno. On failure `ret` is not changed. */
int claim_file_read(struct runtime_dir *dir, const char *uid, struct backing_claims *ret);
/* Return 0, also if there is no file, or -errno. */
int claim_file_remove(struct runtime_dir *dir, const char *uid);
