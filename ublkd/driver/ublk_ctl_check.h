/* SPDX-License-Identifier: MIT */
/* Why the control plane cannot be had on this machine, in words. Private to ublk_ctl. */
#pragma once

#include "ublkd/base/problem.h"

#include <stdbool.h>

/* True for releases (as uname says) whose driver crashes in ADD_DEV. */
bool ctl_kernel_is_known_bad(const char *release);

enum ctl_module {
        CTL_MODULE_LOADED,  /* or built in */
        CTL_MODULE_PRESENT, /* can be loaded */
        CTL_MODULE_ABSENT,  /* the modules of this kernel are there, without it */
        CTL_MODULE_UNKNOWN, /* the modules of this kernel are not there */
        _CTL_MODULE_MAX
};

/* `root` is put before /sys and /lib ("" for this machine). */
enum ctl_module ctl_find_module(const char *root, const char *release);

/* Each adds one problem and returns -error. `error` is positive. */
int ctl_explain_known_bad(const char *release, struct problem_list *problems);
int ctl_explain_open(int error, enum ctl_module module, const char *release, struct problem_list *problems);
/* io_uring_disabled: what /proc/sys/kernel/io_uring_disabled says; -1: there is no such file. */
int ctl_explain_ring(int error, int io_uring_disabled, struct problem_list *problems);
int ctl_explain_features(int error, const char *release, struct problem_list *problems);
int ctl_explain_helper(int error, const char *helper_path, struct problem_list *problems);

/* The content of /proc/sys/kernel/io_uring_disabled, or -1. For the control helper, not for the loop. */
int ctl_io_uring_disabled(void);
