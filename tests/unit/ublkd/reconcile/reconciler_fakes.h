/* SPDX-License-Identifier: MIT */
/* A kernel and workers that are pretended, for tests of the reconciler: every control command waits in a
 * queue until the test lets it be answered, and a worker does only what the test says. */
#pragma once

#include "ublkd/driver/ublk_ctl.h"
#include "ublkd/workers/worker_proc.h"

enum { FAKE_NUMBERS = 1 << 14, FAKE_STRANGER = 1 /* a cookie */ };

/* The kernel's devices, by number. */
struct fake_disk {
        bool there;
        bool open;     /* by somebody: it can be stopped, but it is not deleted */
        bool vanishes; /* between a look at it and its DEL_DEV */
        struct kernel_device device;
        uint64_t size; /* 0: as it was made, 1 MiB */
};
extern struct fake_disk fake_disks[FAKE_NUMBERS];
extern char fake_user[64];      /* who has a disk open that is; "": that cannot be found out */
extern int fake_get_info_error; /* -errno: the kernel does not say anything */
extern unsigned fake_looks;     /* GET_DEV_INFOs */
extern unsigned fake_kills;     /* of workers */
extern unsigned fake_quiesces;  /* QUIESCE_DEVs */
extern bool fake_crashes;       /* a worker that is quiesced dies by SIGSEGV */
extern unsigned fake_holds;     /* STOP_DEVs with the disk held exclusively */
extern int fake_hold_error;     /* -errno of every such one: somebody else holds it, or it cannot be opened */
extern int fake_adopt_error;    /* -errno of every attempt to adopt a worker; -ENOENT: none lives; 0: one
                                   does, and has not said HELLO yet */
extern bool fake_hurried;       /* a stranger is faster than every ADD_DEV, until one was */

extern int fake_add_error;          /* -errno of every ADD_DEV */
extern unsigned fake_releases;      /* as many ADD_DEVs find the number taken by a disk that is no more */
extern bool fake_held;              /* dead workers have requests under way */
extern uint64_t fake_dropped_flags; /* that the kernel negotiates down */
extern unsigned fake_adds;          /* ADD_DEVs */

/* Answers the oldest command. False: there is none. */
bool fake_ctl_answer(void);

enum { FAKE_PID = 4711 }; /* of every worker */

/* The worker of a device, or NULL. */
struct worker_proc *fake_worker(const char *name);
/* It says PARAMS, with `key` for its backing store. */
void fake_worker_open(struct worker_proc *worker, const char *key);
/* It says BACKING before that: a store with this identity, open as `fd`, which it takes over; -1: it refuses
 * it. */
void fake_worker_store(struct worker_proc *worker, const char *identity, int fd);
/* The same of a block device; claimed: the descriptor is the exclusive one. */
void fake_worker_disk(struct worker_proc *worker, const char *identity, int fd, bool claimed);
/* The descriptor of the store that it was started with, or -1. */
int fake_worker_given(const struct worker_proc *worker);
/* What it will say in PARAMS; to be added to before it opens. */
struct disk_params *fake_worker_params(struct worker_proc *worker);
/* Its disk begins at `start` bytes of its backing store. */
void fake_worker_place(struct worker_proc *worker, uint64_t start);
/* Its path may lead elsewhere after a reboot; the stable one may be NULL. Before it opens the store. */
void fake_worker_advise(struct worker_proc *worker, const char *stable_path);
/* The size that it was asked to grow to, 0: it was not. */
uint64_t fake_worker_asked(const struct worker_proc *worker);
/* It answers: it has grown (NULL), or not. */
void fake_worker_grow(struct worker_proc *worker, const char *refusal);
void fake_worker_ready(struct worker_proc *worker);
/* One that was adopted says HELLO, as it does who serves the disk `number` of that epoch. */
void fake_worker_greet(struct worker_proc *worker, uint16_t epoch, int number);
/* It closes its channel, and is on its way out. */
void fake_worker_leave(struct worker_proc *worker);
/* Its disk, if there is one, is left QUIESCED. */
void fake_worker_die(struct worker_proc *worker);
/* It says why it cannot serve, and dies. */
void fake_worker_refuse(struct worker_proc *worker, const char *reason, const char *detail);
/* The same for BackingInUse: `holder` has its store locked. */
void fake_worker_find_locked(struct worker_proc *worker, pid_t holder, const char *detail);
/* When it was told to lock its backing store. */
enum worker_lock fake_worker_lock(const struct worker_proc *worker);
