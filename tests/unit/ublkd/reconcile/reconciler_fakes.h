/* SPDX-License-Identifier: MIT */
/* A fake kernel for tests of the reconciler, under the real ublk_ctl.c. Every control command waits in a queue until
 * the test answers it. */
#pragma once

#include "tests/stand_in/ctl_stand_in.h"
#include "tests/stand_in/kernel_disk.h"

enum { FAKE_NUMBERS = 1 << 14, FAKE_FOREIGN = 1 /* a cookie */ };

/* The kernel's disks, by number. */
extern struct kernel_disk fake_disks[FAKE_NUMBERS];

/* What the rest of it does, and counts. */
struct fake_kernel {
        char user[64];      /* the opener of an open disk; "": unknown */
        int get_info_error; /* -errno of every GET_DEV_INFO */
        int add_error;      /* -errno of every ADD_DEV */
        int hold_error; /* -errno of each STOP_DEV with the disk held exclusively: the disk has an opener, or
                               cannot be opened */
        unsigned releases;      /* as many ADD_DEVs find the number taken by a deleted disk */
        bool hurried;           /* another program takes the number before the next ADD_DEV, once */
        bool held;              /* dead workers have requests in flight */
        bool replaces;          /* another program, a disk: right after START_USER_RECOVERY */
        bool vanishes;          /* a disk, between GET_DEV_INFO and DEL_DEV */
        bool crashes;           /* a quiesced worker dies by SIGSEGV */
        uint64_t dropped_flags; /* that the kernel drops from ADD_DEV */
        unsigned looks;         /* GET_DEV_INFOs */
        unsigned adds;          /* ADD_DEVs */
        unsigned quiesces;      /* QUIESCE_DEVs */
        unsigned begun;         /* START_USER_RECOVERYs that the driver got */
        bool searches_stop;     /* a search for openers does, when it begins: see world_continue_search() */
        unsigned holds;         /* STOP_DEVs with the disk held exclusively */
};
extern struct fake_kernel fake_kernel;

/* Begin a test: there is no disk. */
void fake_kernel_begin(void);
/* A disk of another program. */
void fake_disk_comes(int number);
/* One that had a server, and can be recovered. */
void fake_disk_comes_down(int number);
/* Answer the oldest command. Return false if there is none. */
bool fake_ctl_answer(void);
