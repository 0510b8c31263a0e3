/* SPDX-License-Identifier: MIT */
/* A fake kernel and fake workers, for tests of the reconciler. Every control command waits in a queue until
 * the test answers it, and a worker does only what the test calls. */
#pragma once

#include "ublkd/driver/ublk_ctl.h"
#include "ublkd/workers/worker_proc.h"

enum { FAKE_NUMBERS = 1 << 14, FAKE_FOREIGN = 1 /* a cookie */ };

/* The kernel's devices, by number. */
struct fake_disk {
        bool there;
        bool open;     /* by an opener: the kernel can stop it, but does not delete it */
        bool vanishes; /* between GET_DEV_INFO and DEL_DEV */
        struct kernel_device device;
        uint64_t size; /* 0: 1 MiB, as at its creation */
};
extern struct fake_disk fake_disks[FAKE_NUMBERS];
extern char fake_user[64];      /* the opener of an open disk; "": unknown */
extern int fake_get_info_error; /* -errno of every GET_DEV_INFO */
extern unsigned fake_looks;     /* GET_DEV_INFOs */
extern unsigned fake_kills;     /* of workers */
extern unsigned fake_quiesces;  /* QUIESCE_DEVs */
extern bool fake_crashes;       /* a quiesced worker dies by SIGSEGV */
extern unsigned fake_holds;     /* STOP_DEVs with the disk held exclusively */
extern int fake_hold_error;     /* -errno of each of them: the disk has an opener, or cannot be opened */
extern int fake_adopt_error;    /* -errno of every attempt to adopt a worker; -ENOENT: none lives; 0: a
                                   worker lives, and has not sent HELLO yet */
extern bool fake_hurried;       /* another program takes the number before the next ADD_DEV, once */

extern int fake_add_error;          /* -errno of every ADD_DEV */
extern unsigned fake_releases;      /* as many ADD_DEVs find the number taken by a deleted disk */
extern bool fake_held;              /* dead workers have requests in flight */
extern uint64_t fake_dropped_flags; /* that the kernel drops from ADD_DEV */
extern unsigned fake_adds;          /* ADD_DEVs */

/* Answer the oldest command. Return false if there is none. */
bool fake_ctl_answer(void);

enum { FAKE_PID = 4711 }; /* of every worker */

/* Return the worker of a device, or NULL. */
struct worker_proc *fake_worker(const char *name);
/* Let it send PARAMS, with `key` for its backing store. */
void fake_worker_open(struct worker_proc *worker, const char *key);
/* Let it send BACKING before that: a store with this identity, open as `fd`, which it takes over; -1: it
 * refuses the store. */
void fake_worker_store(struct worker_proc *worker, const char *identity, int fd);
/* The same of a block device; claimed: the descriptor is the exclusive one. */
void fake_worker_disk(struct worker_proc *worker, const char *identity, int fd, bool claimed);
/* Return the descriptor of the store that it got at its start, or -1. */
int fake_worker_given(const struct worker_proc *worker);
/* Return its future PARAMS, which a test may change before the worker opens its store. */
struct disk_params *fake_worker_params(struct worker_proc *worker);
/* Let its disk begin at `start` bytes of its backing store. */
void fake_worker_place(struct worker_proc *worker, uint64_t start);
/* Let it report that its path may lead elsewhere after a reboot. stable_path: NULL if it has none. Call it
 * before the worker opens the store. */
void fake_worker_advise(struct worker_proc *worker, const char *stable_path);
/* Return the size of the last GROW; 0: none. */
uint64_t fake_worker_asked(const struct worker_proc *worker);
/* Let it answer GROW: it has grown (NULL), or the refusal. */
void fake_worker_grow(struct worker_proc *worker, const char *refusal);
void fake_worker_ready(struct worker_proc *worker);
/* Let an adopted worker send HELLO, as the server of the disk `number` of that epoch. */
void fake_worker_greet(struct worker_proc *worker, uint16_t epoch, int number);
/* Let it close its channel: it is exiting. */
void fake_worker_leave(struct worker_proc *worker);
/* Kill it: its disk, if there is one, becomes QUIESCED. */
void fake_worker_die(struct worker_proc *worker);
/* Let it report why it cannot serve, and exit. */
void fake_worker_refuse(struct worker_proc *worker, const char *reason, const char *detail);
/* The same for BackingTooSmall. */
void fake_worker_refuse_size(struct worker_proc *worker, const char *detail);
/* The same for BackingInUse: `holder` has its store locked. */
void fake_worker_find_locked(struct worker_proc *worker, pid_t holder, const char *detail);
/* Return when CONFIG lets it lock its backing store. */
enum worker_lock fake_worker_lock(const struct worker_proc *worker);
