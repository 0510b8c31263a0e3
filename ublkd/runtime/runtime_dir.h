/* SPDX-License-Identifier: MIT */
/* /run/ublkd: what is ours while the machine is up. One supervisor holds it at a time. */
#pragma once

#include "ublkd/base/problem.h"
#include "ublkd/proto/device_region.h"

struct runtime_dir;

/* Creates (mode 0755) and locks PATH, and PATH/workers (0700). Returns 0; -errno with one problem (in use by
 * another ublkd, not permitted, writable for others, read-only, not a directory). The lock goes with the
 * process, whatever children it leaves; open it once in a process, which would not be in its own way. */
int runtime_dir_open(const char *path, struct runtime_dir **ret, struct problem_list *problems);
struct runtime_dir *runtime_dir_free(struct runtime_dir *dir);

/* 0; -ENOLINK: what is open is not what is at the path any more. It was removed, moved or replaced, and what is written
 * to it is lost. */
int runtime_dir_check(const struct runtime_dir *dir);
/* Makes and locks what is missing of the directory, without what was in it. 0; -errno, with nothing changed. */
int runtime_dir_remake(struct runtime_dir *dir);

/* As it was given to runtime_dir_open(). Valid as long as `dir`. */
const char *runtime_dir_path(const struct runtime_dir *dir);

/* PATH/disks (0755), which is made where it is missing. A descriptor (the caller's) or -errno; -EPERM: it
 * belongs to another user. */
int runtime_dir_open_disks(const struct runtime_dir *dir);

/* A new non-blocking SOCK_SEQPACKET socket bound to workers/UID.sock, not listening yet (the worker does
 * that, so that SO_PEERCRED names it); an old file is replaced. Works for paths of any length. fd or -errno.
 */
int runtime_dir_bind_worker(struct runtime_dir *dir, const char *uid);
/* A non-blocking connection to the worker of `uid`. fd; -EAGAIN: it lives but accepts no connection; -ENOENT: no
 * worker lives there; other -errno. */
int runtime_dir_connect_worker(struct runtime_dir *dir, const char *uid);
/* Removes the socket file of a worker that is gone. 0 or -errno; 0 when there is none. */
int runtime_dir_remove_worker(struct runtime_dir *dir, const char *uid);

/* The region that the workers of `uid` share (proto/device_region.h), for reading and writing. fd; -ENOENT:
 * there is none; other -errno. */
int runtime_dir_open_region(struct runtime_dir *dir, const char *uid);
/* The same, and when there is none that fits `key`, a new empty one takes its place: what an older worker has
 * mapped stays as it is. Only while no worker of `uid` is to live on. fd or -errno (ENOSPC). */
int runtime_dir_ensure_region(struct runtime_dir *dir, const char *uid, const struct device_region_key *key);
/* 0 or -errno; 0 when there is none. */
int runtime_dir_remove_region(struct runtime_dir *dir, const char *uid);

/* What is kept of a device beside its region and its record. */
enum runtime_text {
        RUNTIME_BACKING, /* workers/UID.backing */
        RUNTIME_CLAIM,   /* workers/UID.claim: claim_file.h */
        RUNTIME_PARAMS,  /* workers/UID.params */
        _RUNTIME_TEXT_MAX
};

/* Replaces the text (mode 0600), whole or not at all. 0 or -errno. */
int runtime_dir_write(struct runtime_dir *dir, const char *uid, enum runtime_text which, const char *text);
/* *ret: the caller's. 0; -ENOENT: there is none; -EFBIG; other -errno. */
int runtime_dir_read(struct runtime_dir *dir, const char *uid, enum runtime_text which, char **ret);
/* 0 or -errno; 0 when there is none. */
int runtime_dir_remove(struct runtime_dir *dir, const char *uid, enum runtime_text which);

/* Puts `text` in the place of workers/UID.record (mode 0600), as a whole or not at all. 0 or -errno. */
int runtime_dir_write_record(struct runtime_dir *dir, const char *uid, const char *text);
/* 0 and an owned text of `size_max` bytes at most. -ENOENT: there is none; -EFBIG; other -errno. */
int runtime_dir_read_record(struct runtime_dir *dir, const char *uid, size_t size_max, char **ret);
/* 0 or -errno; 0 when there is none. */
int runtime_dir_remove_record(struct runtime_dir *dir, const char *uid);
/* Calls `each` with the uid of every record that is there, until it returns below 0. What that returns, or
 * -errno. */
int runtime_dir_each_record(
        struct runtime_dir *dir, int (*each)(void *userdata, const char *uid), void *userdata);

/* workers/database: which database ran here last, and how far it was (one line, the caller's to write). A
 * descriptor for reading and writing, or -errno. */
int runtime_dir_open_database_mark(struct runtime_dir *dir);
