/* SPDX-License-Identifier: MIT */
/* Why the control plane cannot be had on this machine, in words. Private to ublk_ctl. */
#pragma once

#include "ublkd/base/problem.h"

#include <stdbool.h>

/* Return whether the driver of this release (as in uname) crashes in ADD_DEV. */
bool ctl_kernel_is_known_bad(const char *release);

enum ctl_module {
        CTL_MODULE_LOADED,  /* or built in */
        CTL_MODULE_PRESENT, /* can be loaded */
        CTL_MODULE_ABSENT,  /* the modules of this kernel are there, without it */
        CTL_MODULE_UNKNOWN, /* the modules of this kernel are not there */
        _CTL_MODULE_MAX
};

/* Find out whether the driver is loaded, or can be. `root` is put before /sys and /lib ("" for this machine).
 */
enum ctl_module ctl_find_module(const char *root, const char *release);

/* Add one problem, and return -error; so does each function below. `error` is positive. */
int ctl_explain_known_bad(const char *release, struct problem_list *problems);
int ctl_explain_open(int error, enum ctl_module module, const char *release, struct problem_list *problems);
/* Explain why io_uring cannot be used. io_uring_disabled: the content of /proc/sys/kernel/io_uring_disabled;
 * -1: there is no such file. */
int ctl_explain_ring(int error, int io_uring_disabled, struct problem_list *problems);
int ctl_explain_features(int error, const char *release, struct problem_list *problems);
int ctl_explain_helper(int error, const char *helper_path, struct problem_list *problems);

/* Return the content of /proc/sys/kernel/io_uring_disabled, or -1. For the control helper, not for the loop.
 */
int ctl_io_uring_disabled(void);
