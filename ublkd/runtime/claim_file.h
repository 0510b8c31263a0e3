/* SPDX-License-Identifier: MIT */
/* The claims of a disk on its backing store, kept in the runtime directory: the next ublkd has to know of
 * them before any worker could tell, for a disk that waits for its recovery has none. Gone with a reboot, as
 * the disk is. */
#pragma once

#include "ublkd/base/backing_claims.h"
#include "ublkd/runtime/runtime_dir.h"

/* Replaces the file. 0 or -errno. */
int claim_file_write(struct runtime_dir *dir, const char *uid, const struct backing_claims *claims);
/* ret is the caller's to clear; untouched on failure. 0; -ENOENT; -EBADMSG: it holds something else; other
 * -errno. */
int claim_file_read(struct runtime_dir *dir, const char *uid, struct backing_claims *ret);
/* 0 or -errno; 0 when there is none. */
int claim_file_remove(struct runtime_dir *dir, const char *uid);
