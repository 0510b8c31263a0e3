/* SPDX-License-Identifier: MIT */
/* Workers for tests of the reconciler, under the real worker_proc.c: each does only what the test calls, and it is
 * done at once. */
#pragma once

#include "tests/stand_in/worker_stand_in.h"
#include "ublkd/store/device_store.h"

#include <sys/queue.h>

enum {
        FAKE_PID = 4711, /* of every worker */
        FAKE_STORES = 3, /* of a list */
};

/* It is there as long as ublkd knows its process. */
struct fake_worker {
        TAILQ_ENTRY(fake_worker) link;
        struct worker_stand_in stand_in;
        int index;
        char *name, *uid;
        /* CONFIG, unless it was adopted; given: the descriptor of the store, or -1 */
        uint16_t epoch;
        int given;
        bool hide_name, exists, has_data, expected_served;
        uid_t store_user;
        enum worker_lock lock;
        /* GO, or HELLO of an adopted worker: or -1; GROW, or 0 */
        int number;
        uint64_t asked;
        unsigned unanswered; /* GROWs */
        uint64_t action;     /* the id of the last ACTION, or 0 */
        bool leaves;         /* LEAVE came */
        /* what it will say; a test may change `params` until then */
        struct disk_params params;
        uint64_t start;            /* of its claim */
        struct worker_store store; /* with `speaks` */
        bool speaks;               /* BACKING is still to be sent */
        /* In place of `store`, of a tree with a list. */
        struct listed_store wanted[FAKE_STORES]; /* of CONFIG */
        int wanted_fds[FAKE_STORES];
        unsigned listed;
        struct worker_store list[FAKE_STORES];
        unsigned count;
        bool loses_descriptors;              /* of the list: ublkd has no room for them */
        bool greeted, crashes, killed, dead; /* crashes: by SIGSEGV; killed: by SIGKILL */
};

/* All workers, the newest last. */
TAILQ_HEAD(fake_workers, fake_worker);
extern struct fake_workers fake_workers;

extern unsigned fake_kills;      /* of workers */
extern int fake_adopt_error;     /* -errno of every attempt to adopt a worker; -ENOENT: none lives; 0: a
                                worker lives, and has not sent HELLO yet */
extern const char *fake_version; /* that they send with their next HELLO */
extern bool fake_acts;           /* their programs know of ACTION */
extern bool fake_leaves;         /* and of LEAVE */
extern bool fake_stays;          /* no worker is exiting, also if it has closed its channel or its socket */
extern bool fake_mark;           /* with -ECONNREFUSED: the worker lives nevertheless */

/* Begin a test: the workers are those of the devices in `store`. */
void fake_workers_begin(struct device_store *store);

/* Return the worker of a device, or NULL. */
struct fake_worker *fake_worker(const char *name);
/* Return its stage, as ublkd knows it. */
enum worker_stage fake_worker_stage(const struct fake_worker *worker);
/* Let it send PARAMS, with `key` for its backing store; NULL: it has none. */
void fake_worker_open(struct fake_worker *worker, const char *key);
/* Let it send BACKING before its next message: a store with this identity, open as `fd`, which it takes over;
 * -1: it refuses the store. */
void fake_worker_store(struct fake_worker *worker, const char *identity, int fd);
/* The same of a list: the store `number` of `count`. */
void fake_worker_listed(
        struct fake_worker *worker, unsigned number, unsigned count, const char *identity, int fd);
/* The same of a block device; claimed: the descriptor is the exclusive one. */
void fake_worker_disk(struct fake_worker *worker, const char *identity, int fd, bool claimed);
/* The same of a store that it refuses, although it has opened it as `fd`, which stays the caller's. */
void fake_worker_refuse_store(struct fake_worker *worker, const char *identity, int fd);
/* Let it report that its path may lead elsewhere after a reboot. stable_path: NULL if it has none. Call it
 * before the worker opens the store. */
void fake_worker_advise(struct fake_worker *worker, const char *stable_path);
/* Let it answer each GROW: it has grown (NULL), or the refusal. */
void fake_worker_grow(struct fake_worker *worker, const char *refusal);
void fake_worker_ready(struct fake_worker *worker);
/* Let an adopted worker send HELLO, as the server of the disk `number` of that epoch. */
void fake_worker_greet(struct fake_worker *worker, uint16_t epoch, int number);
/* The same in another stage. */
void fake_worker_greet_as(struct fake_worker *worker, uint16_t epoch, int number, enum worker_stage stage);
/* Let it close its channel: it is exiting. */
void fake_worker_leave(struct fake_worker *worker);
/* Kill it: its disk, if there is one, becomes QUIESCED. */
void fake_worker_die(struct fake_worker *worker);
/* Let it report why it cannot serve, and exit. */
void fake_worker_refuse(struct fake_worker *worker, const char *reason, const char *detail);
/* The same with this error and pointer. */
void fake_worker_refuse_at(
        struct fake_worker *worker, int error, const char *pointer, const char *reason, const char *detail);
/* The same for BackingTooSmall. */
void fake_worker_refuse_size(struct fake_worker *worker, const char *detail);
/* The same for BackingInUse: `holder` has its store locked. */
void fake_worker_find_locked(struct fake_worker *worker, pid_t holder, const char *detail);
