/* SPDX-License-Identifier: MIT */
/* Control helpers for the test of ublk_ctl: each plays one part. */
#pragma once

#define CONTROL_COOKIE UINT64_C(0xfedcba9876543210) /* of every device */

/* Numbers of devices to which the part "kernel" gives odd answers. */
enum {
        NUMBER_FOREIGN = 500,  /* created without privileges: the driver describes it only by path */
        NUMBER_HANGS = 900,    /* never answers */
        NUMBER_MISSING = 404,  /* is not there */
        NUMBER_PARAMS = 77,    /* takes one set of parameters only, see ublk_ctl_test.c */
        NUMBER_REVERSED = 300, /* this and the next two are answered in the wrong order */
        NUMBER_ODD = 600,      /* in a state that does not exist */
        NUMBER_OLD = 601,      /* the errno that user space has no name for */
};

/* Plays the part that the environment's CTL_TEST_HELPER names, until the channel closes; without one, the
 * real helper. Returns an exit status. */
int control_helper_fake(void);
