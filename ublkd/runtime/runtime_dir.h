/* SPDX-License-Identifier: MIT */
/* /run/ublkd: files of ublkd that a reboot clears. One supervisor at a time has it locked. */
#pragma once

#include "ublkd/base/problem.h"
#include "ublkd/proto/region_kept.h"

struct runtime_dir;

/* Create (mode 0755) and lock PATH, and create PATH/workers (0700). Return 0; -errno with one problem (in use
 * by another ublkd, not permitted, writable for others, read-only, not a directory). The lock ends with the
 * process, even if it leaves children. Open it once in a process: a lock does not keep its own process
 * out. */
int runtime_dir_open(const char *path, struct runtime_dir **ret, struct problem_list *problems);
struct runtime_dir *runtime_dir_free(struct runtime_dir *dir);

/* Return 0; -ENOLINK: the directory at the path is not the open one, which was removed, moved or replaced.
 * What ublkd writes to the open one is lost. */
int runtime_dir_check(const struct runtime_dir *dir);
/* Create and lock what is missing of the directory, without its old entries. Return 0; -errno: nothing
 * changed. */
int runtime_dir_remake(struct runtime_dir *dir);

/* Return the path that runtime_dir_open() got. Valid as long as `dir`. */
const char *runtime_dir_path(const struct runtime_dir *dir);

/* Open PATH/disks (0755), and create it if it is missing. Return a descriptor that the caller closes, or
 * -errno; -EPERM: it belongs to another user. */
int runtime_dir_open_disks(const struct runtime_dir *dir);

/* Marks of disks for a service manager: disk_marks.h. */
enum runtime_marks {
        RUNTIME_LIVE,   /* live/NAME */
        RUNTIME_FAILED, /* failed/NAME */
        _RUNTIME_MARKS_MAX
};

/* Open PATH/live or PATH/failed (0700: names of tenants' devices are in it) as runtime_dir_open_disks() does. */
int runtime_dir_open_marks(const struct runtime_dir *dir, enum runtime_marks which);

/* Bind a new non-blocking SOCK_SEQPACKET socket to workers/UID.sock, and replace an old file. The worker
 * calls listen(), so that SO_PEERCRED names it. Works for paths of any length. Return a descriptor or
 * -errno. */
int runtime_dir_bind_worker(struct runtime_dir *dir, const char *uid);
/* Connect to the worker of `uid`, non-blocking. Return a descriptor; -EAGAIN: it lives but does not accept
 * connections; -ECONNREFUSED: no process listens there, as a rule because the worker is dead; -ENOENT: there is no
 * socket; other -errno. */
int runtime_dir_connect_worker(struct runtime_dir *dir, const char *uid);
/* Remove the socket file of a worker that has exited, and the note of its process. Return 0, also if there is none, or
 * -errno. */
int runtime_dir_remove_worker(struct runtime_dir *dir, const char *uid);

/* Open the region that the workers of `uid` share (proto/device_region.h), for reading and writing. Return a
 * descriptor; -ENOENT: there is none; other -errno. */
int runtime_dir_open_region(struct runtime_dir *dir, const char *uid);
/* Open the region as runtime_dir_open_region(); if there is none that fits `key`, create a new empty one in
 * its place: what an older worker has mapped does not change. Only while no worker of `uid` is to stay.
 * Return a descriptor or -errno (ENOSPC). */
int runtime_dir_ensure_region(struct runtime_dir *dir, const char *uid, const struct device_region_key *key);
/* Open the region as runtime_dir_ensure_region(), with kept memory for the next worker (proto/region_kept.h). If it has
 * none that fits `wish`, one with new memory, zeroed, comes in its place, and everything else in it is taken over. Only
 * while no worker of `uid` lives. Return a descriptor; -E2BIG: the target declares too much; other -errno (ENOSPC). */
int runtime_dir_ensure_kept(struct runtime_dir *dir, const char *uid, const struct device_region_key *key,
        const struct region_kept_wish *wish);
/* Remove the region. Return 0, also if there is none, or -errno. */
int runtime_dir_remove_region(struct runtime_dir *dir, const char *uid);

/* Return whether another supervisor could adopt the worker of `uid`: its socket and its region have names. */
bool runtime_dir_has_worker(const struct runtime_dir *dir, const char *uid);
/* Return whether workers/UID.record exists. */
bool runtime_dir_has_record(const struct runtime_dir *dir, const char *uid);

/* The files of a device beside its region and its record. */
enum runtime_text {
        RUNTIME_BACKING, /* workers/UID.backing */
        RUNTIME_CLAIM,   /* workers/UID.claim: claim_file.h */
        RUNTIME_PARAMS,  /* workers/UID.params */
        RUNTIME_WORKER,  /* workers/UID.worker: workers/worker_mark.h */
        _RUNTIME_TEXT_MAX
};

/* Replace the text (mode 0600), whole or not at all. Return 0 or -errno. */
int runtime_dir_write(struct runtime_dir *dir, const char *uid, enum runtime_text which, const char *text);
/* Return 0 and a text that the caller frees; -ENOENT: there is none; -EFBIG; other -errno. */
int runtime_dir_read(struct runtime_dir *dir, const char *uid, enum runtime_text which, char **ret);
/* Remove the text. Return 0, also if there is none, or -errno. */
int runtime_dir_remove(struct runtime_dir *dir, const char *uid, enum runtime_text which);

/* Replace workers/UID.record (mode 0600) by `text`, whole or not at all. Return 0 or -errno. */
int runtime_dir_write_record(struct runtime_dir *dir, const char *uid, const char *text);
/* Return 0 and a text of `size_max` bytes at most, which the caller frees; -ENOENT: there is none; -EFBIG;
 * other -errno. */
int runtime_dir_read_record(struct runtime_dir *dir, const char *uid, size_t size_max, char **ret);
/* Remove the record. Return 0, also if there is none, or -errno. */
int runtime_dir_remove_record(struct runtime_dir *dir, const char *uid);
/* Call `each` with the uid of every record, until it returns a negative value. Return that value, or 0 or
 * -errno. */
int runtime_dir_each_record(
        struct runtime_dir *dir, int (*each)(void *userdata, const char *uid), void *userdata);

/* Open workers/database: which database ran here last, and its revision (one line, which the caller writes).
 * Return a descriptor for reading and writing, or -errno. */
int runtime_dir_open_database_mark(struct runtime_dir *dir);
/* Open workers/uids, as that: workers/worker_uids.h. */
int runtime_dir_open_uids(struct runtime_dir *dir);
