/* SPDX-License-Identifier: MIT */
/* What a callback can wait for beside the files of its device: others of its kind, descriptors, time,
 * sockets, work.
 *
 * Each await_*() is called on a coroutine of `queue`, on its thread, and suspends it until what it waits for
 * has happened; other requests run meanwhile. What it needs is reserved when the queue opens, by what the
 * target declares (target_desc.needs, .waits): nothing here allocates memory. What is not declared is neither
 * reserved nor allowed by the walls of the worker: the call fails with -EACCES. A place for a descriptor that
 * is not declared is a bug of the target: an assertion.
 *
 * Death: a process that dies takes everything with it that waits here, and the next worker finds none of it.
 *
 * The background: a coroutine that the core asks to stop gets -ECANCELED from the await that it is in, and
 * from each that it begins afterwards. That holds for this header and await_condition(), and for what it fans
 * out to. It does not hold for locks and for files (target.h): these end by themselves. A coroutine that
 * calls only those asks target_queue_stopping(). Requests are never asked to stop: the driver waits for each
 * of them. */
#pragma once

#include "targets/target.h"
#include "targets/target_locks.h"

/* ---- several at the same time ---- */

/* One of several parts of a request. The caller sets `run` and `argument`. */
struct target_child {
        int (*run)(void *argument); /* returns 0 or more, or -errno; may suspend, and may fan out itself */
        void *argument;
        int result; /* what run() returned */
        void *fan;  /* the core's */
};

/* Run all of them at the same time, and return when each has returned: what they use may lie on the stack of
 * the caller. They begin in their order. The first one runs on the coroutine of the caller, so n of them need
 * n - 1 of desc->waits.children, which all requests of a queue share. Those that find none wait for a place, or
 * run on the coroutine of the caller one after the other: so it always ends, also in a target that declares
 * none. None may wait for another of the same call. Return 0, or the error of the child that failed first. */
int await_all(struct target_queue *queue, struct target_child *children, unsigned count);

/* Run a child on the coroutine of the caller, and call moment() whenever that coroutine suspends (resumed: false), and when it is
 * about to continue: for tests, that look at a request or end the process between two awaits. moment() must not suspend, and calls
 * nothing of this header. Parts that the child performs by await_all() are coroutines of their own, and are not seen. It takes a stack
 * as one child of await_all() does, or waits for the one that desc->waits.watched reserves; so it always ends. The child does not call
 * it again. Nothing of it is on the way of requests that are not watched. Return 0 with child->result; -ENOMEM: the kernel has no
 * memory for the stack now, and the child was not run. */
int await_watched(struct target_queue *queue, struct target_child *child,
        void (*moment)(void *argument, bool resumed), void *argument);

/* ---- descriptors ---- */

/* Where a function below takes a `file`: an index into device->files, or TARGET_QUEUE_FILE + N for place N of
 * the descriptors of this queue (desc->waits.files). */
enum { TARGET_QUEUE_FILE = TARGET_FILES_MAX };

/* Put a descriptor into a place of the queue, or empty it (fd -1). The target owns fd, and keeps it open
 * until it has put something else there. An operation that is under way keeps the old file. A call that has
 * begun there begins no further operation, and returns -ECANCELED instead: no message is of two connections.
 * On the thread of the queue; does not suspend. Once start_queue() has returned it needs TARGET_NEEDS_NETWORK
 * (else -EACCES). Return 0 or -errno. After -EACCES, and after -EAGAIN and -EBUSY (the kernel takes no
 * entries now), the place has the file that it had; after another error it may be empty. */
int target_queue_set_file(struct target_queue *queue, unsigned file, int fd);

/* Wait until `events` (POLLIN, …) or an error can be had of a file: once, for a library that works with
 * descriptors. Needs TARGET_NEEDS_POLL or TARGET_NEEDS_NETWORK (else -EACCES). Return the events (above 0) or
 * -errno; -EBADF: the place is empty. */
int await_fd(struct target_queue *queue, unsigned file, short events);

/* Make everything end that coroutines of this queue wait for with that file: with -ECANCELED, unless it has
 * ended already; also a message of which a part has been sent or received. For a connection that is given up;
 * not for a file of which await_read() and the like are under way, whose requests would fail. Needs the same.
 * Return how many operations the kernel has ended, or -errno. */
int await_cancel(struct target_queue *queue, unsigned file);

/* ---- time ---- */

/* Wait for so many nanoseconds, of a clock that stands still while the machine is suspended. Return 0 or
 * -errno. */
int await_timeout(struct target_queue *queue, uint64_t nanoseconds);

/* ---- sockets ---- */

/* Each needs TARGET_NEEDS_NETWORK (else -EACCES). The socket is of a kind that delivers a stream. Memory of
 * the caller, which may be on its stack: the kernel has finished with it when the call returns. An error is
 * one of the connection: after it nothing is known of what has arrived. Coroutines that send to one socket
 * need a lock among them, and so do those that receive. */

/* Send all of it; no SIGPIPE. Return `length` or -errno. */
int await_send(struct target_queue *queue, unsigned file, const void *memory, uint32_t length);
/* Receive `length` bytes. Return `length`; 0: the other side closed the stream before the first of them, or
 * `length` is 0, which says nothing of the stream; -ECONNRESET: it closed it after the first; other
 * -errno. */
int await_recv(struct target_queue *queue, unsigned file, void *memory, uint32_t length);
/* Receive what is there, at least a byte. `length` is above 0. Return how many; 0: the other side closed the
 * stream; -errno. */
int await_recv_some(struct target_queue *queue, unsigned file, void *memory, uint32_t length);

/* ---- work ---- */

/* Run a function on one of the threads of desc->waits.work_threads: calculations that would hold up the
 * queue, or a call that blocks. It must not suspend, allocate memory, or touch what the thread of the queue
 * uses meanwhile. It has the system calls of a worker that serves (targets/worker/os/call_filter.c). While
 * one runs, the disk is not given to another worker, also when this one dies: a blocking write to the store
 * is over by then. Where all threads are busy it waits, first come, first served. What has begun is never
 * cancelled, because what it writes could come late then, and the core waits for it before the queue closes: it
 * must end, within seconds. docs/worker.md has when ublkd kills a worker that does not. Return what it returned,
 * or -ECANCELED: it was not begun; -EACCES: the target declares no threads. */
int await_work(struct target_queue *queue, int (*run)(void *argument), void *argument);

/* ---- the background ---- */

/* Return whether the coroutine that runs was asked to stop. Does not suspend. */
bool target_queue_stopping(const struct target_queue *queue);
