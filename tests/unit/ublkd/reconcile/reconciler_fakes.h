/* SPDX-License-Identifier: MIT */
/* A fake kernel, for tests of the reconciler. Every control command waits in a queue until the test answers it. */
#pragma once

#include "ublkd/driver/ublk_ctl.h"

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
extern unsigned fake_quiesces;  /* QUIESCE_DEVs */
extern bool fake_crashes;       /* a quiesced worker dies by SIGSEGV */
extern unsigned fake_holds;     /* STOP_DEVs with the disk held exclusively */
extern int fake_hold_error;     /* -errno of each of them: the disk has an opener, or cannot be opened */
extern bool fake_hurried;       /* another program takes the number before the next ADD_DEV, once */

extern int fake_add_error;          /* -errno of every ADD_DEV */
extern unsigned fake_releases;      /* as many ADD_DEVs find the number taken by a deleted disk */
extern bool fake_held;              /* dead workers have requests in flight */
extern uint64_t fake_dropped_flags; /* that the kernel drops from ADD_DEV */
extern unsigned fake_adds;          /* ADD_DEVs */

/* Answer the oldest command. Return false if there is none. */
bool fake_ctl_answer(void);
